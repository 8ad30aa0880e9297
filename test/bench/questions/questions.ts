/**
 * The questions of data teams: how long an analyst waits for each example and each panel of the boards, one at a time, at 400,000
 * campaigns and 4 M rows of history.
 *
 * Each table is in one part, as the projector's rewrite leaves it (services/projector/rewrite-loop.ts). Rows in newer parts cost more
 * until the next rewrite: FINAL has to compare the parts then.
 */
import { readFileSync } from 'node:fs'
import { readExamples } from '../../../services/portal/guide/data-examples.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { definerUser } from '../../../services/tables/schema/roles.ts'
import { nameDatabases } from '../../../services/tables/sql-text.ts'
import { rewriteParts, versionedTables } from '../../../services/tables/superseded.ts'
import { expandSql, sqlQueries } from '../../integration/deploy/board-files.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { foldPlatform, mergesEnded } from '../platform/fold.ts'
import { campaignIdOf, type PlatformSize } from '../platform/platform.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'

export const questionsSize: PlatformSize = { campaigns: 400_000, pledges: 4_000_000 }
const samples = 5
const target = { atMost: 1_000 }
const monthMs = 30 * 86_400_000
const rewriteMsMax = 120_000
const monotonicMs = () => performance.now()

export async function benchQuestions(workspace: Workspace, size: PlatformSize): Promise<BenchReport> {
  const own = await openOwnTables({ directory: workspace.directory('questions'), analyst: { password: '' } })
  try {
    const rows = await fill(own, size)
    const figures: Figure[] = []
    for (const { name, sql } of questions()) {
      const measured: number[] = []
      // The first one warms up.
      for (let asked = 0; asked <= samples; asked++) measured.push(await msOf(own, name, sql))
      figures.push(figureOf(name, 'ms', summarize(measured.slice(1)), target))
    }
    return {
      bench: 'questions',
      notes: [
        `${size.campaigns} campaigns, ${size.pledges} pledges and ${rows} rows of history; one question at a time, as the user analyst.`,
      ],
      figures: figures.toSorted((a, b) => b.value - a.value),
    }
  } finally {
    await own.close()
  }
}

/** Returns how many rows the history has. */
async function fill({ tables }: OwnTables, size: PlatformSize): Promise<number> {
  await foldPlatform(tables, defaultDatabases, size)
  await migrate(tables, defaultDatabases, { viewsDefiner: definerUser })
  await holdTablesIdentity(tables, defaultDatabases, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' })
  const sql = readFileSync(new URL('history.sql', import.meta.url), 'utf8')
  await tables.run({ query: nameDatabases(sql, defaultDatabases) })
  const { base } = defaultDatabases
  await tables.run({
    query: `INSERT INTO ${base}.history_marks SELECT '', now64(3), now64(3), '2018-01-01' SETTINGS async_insert = 0`,
  })
  await mergesEnded(tables)
  for (const table of versionedTables) {
    await rewriteParts(tables, defaultDatabases, table, { msMax: rewriteMsMax, monotonicMs, sleep })
  }
  const [row] = await tables.rows<{ rows: number }>({
    query: `SELECT count() AS rows FROM ${base}.campaign_days`,
  })
  return row?.rows ?? 0
}

function questions(): { name: string; sql: string }[] {
  const now = Date.now()
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  const campaign = Buffer.from(campaignIdOf(0)).toString('hex').toUpperCase()
  const shown = {
    from: day(now - monthMs),
    to: day(now),
    variables: { category: ['Category 1', 'Category 2'], campaign: [campaign] },
  }
  return [
    ...readExamples(defaultDatabases.views),
    ...sqlQueries().map(({ name, text }) => ({ name, sql: expandSql(text, shown) })),
  ]
}

async function msOf({ clickHouse }: OwnTables, name: string, sql: string): Promise<number> {
  const startedMs = performance.now()
  const { status, text } = await askAsAnalyst(clickHouse.url, `${sql}\nFORMAT JSONCompactEachRow`)
  if (status !== 200) throw new Error(`${name} is not answered: ${text.trim()}`)
  return performance.now() - startedMs
}
