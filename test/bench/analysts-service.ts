/** The server of the analysts bench: a folded platform, the query service's app, and the data teams' user. */
import { defaultDatabases } from '../../services/tables/generations.ts'
import { openOwnTables } from '../support/clickhouse.ts'
import { benchInput, serveBench } from './bench-process.ts'
import type { PlatformSize } from './platform.ts'
import { startPlatformApp } from './platform-app.ts'
import { foldPlatform } from './platform-fold.ts'

export interface AnalystsInput extends PlatformSize {
  directory: string
}

export interface AnalystsReady {
  apiUrl: string
  headers: Record<string, string>
  /** The URL that analysts query, without credentials. */
  sqlUrl: string
}

const { directory, ...size } = benchInput<AnalystsInput>()
const { tables, clickHouse, close } = await openOwnTables({ directory, analyst: { password: '' } })
await foldPlatform(tables, defaultDatabases, size)
const app = await startPlatformApp(tables, defaultDatabases, {})
const ready: AnalystsReady = { apiUrl: app.apiUrl, headers: app.headers, sqlUrl: clickHouse.url }
serveBench({
  ready,
  async close() {
    await app.close()
    await close()
  },
})
