/** The server of the questions bench: a folded platform with a history of two years, and the data teams' user. */
import { readFileSync } from 'node:fs'
import { openTables } from '../../services/tables/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { holdTablesIdentity } from '../../services/tables/identity.ts'
import { nameDatabases } from '../../services/tables/migrate.ts'
import { secureViews } from '../../services/tables/roles.ts'
import { settingsFor, startClickHouse } from '../support/clickhouse.ts'
import { benchInput, serveBench } from './bench-process.ts'
import type { PlatformSize } from './platform.ts'
import { foldPlatform, mergesEnded } from './platform-fold.ts'

export interface QuestionsInput extends PlatformSize {
  directory: string
}

export interface QuestionsReady {
  /** The URL that analysts query, without credentials. */
  sqlUrl: string
  historyRows: number
}

const { directory, ...size } = benchInput<QuestionsInput>()
const clickHouse = await startClickHouse({ directory, analyst: { password: '' } })
// Loading and merging everything takes longer than any statement of the services.
const tables = openTables({ ...settingsFor(clickHouse), silenceMsMax: 300_000 })
await foldPlatform(tables, defaultDatabases, size)
await secureViews(tables, defaultDatabases)
await holdTablesIdentity(tables, defaultDatabases, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' })
const history = readFileSync(new URL('questions-history.sql', import.meta.url), 'utf8')
for (const statement of nameDatabases(history, defaultDatabases).split(/;\n/)) {
  if (statement.trim() !== '') await tables.run({ query: statement })
}
await mergesEnded(tables)
const [row] = await tables.rows<{ count: number }>({
  query: `SELECT count() AS count FROM ${defaultDatabases.base}.campaign_days`,
})
const ready: QuestionsReady = { sqlUrl: clickHouse.url, historyRows: row?.count ?? 0 }
serveBench({
  ready,
  async close() {
    await tables.close()
    await clickHouse.stop()
  },
})
