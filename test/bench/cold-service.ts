/**
 * The cold bench's server: a platform of the size that the targets are about, put straight into the ledger, folded by
 * the projector's own folder, and served by the query service's own app.
 */
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { defaultDatabases } from '../../services/shared/tables/port.ts'
import { benchInput, serveBench } from './bench-process.ts'
import { peakMemoryBytes } from './machine.ts'
import type { PlatformSize } from './platform.ts'
import { startPlatformApp } from './platform-app.ts'
import { type FoldedPlatform, foldPlatform } from './platform-fold.ts'

export interface ColdInput extends PlatformSize {
  directory: string
}

export interface ColdReady extends FoldedPlatform {
  apiUrl: string
  headers: Record<string, string>
}

export interface ColdAnswer {
  peakBytes: number
}

const { directory, ...size } = benchInput<ColdInput>()
const tables = openChdbTables(directory)
const folded = await foldPlatform(tables, defaultDatabases, size)
// Statistics have no parameters that could be varied, so they expire at once.
const app = await startPlatformApp(tables, defaultDatabases, { statsCacheMs: 1 })

const ready: ColdReady = { apiUrl: app.apiUrl, headers: app.headers, ...folded }
serveBench({
  ready,
  answer: async (): Promise<ColdAnswer> => ({ peakBytes: peakMemoryBytes() }),
  async close() {
    await app.close()
    await tables.close()
  },
})
