/** Fills the list bench's tables, once for all of its processes, which have the data directory one after the other. */
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { defaultDatabases } from '../../services/shared/tables/port.ts'
import { benchInput, serveBench } from './bench-process.ts'
import type { PlatformSize } from './platform.ts'
import { type FoldedPlatform, foldPlatform } from './platform-fold.ts'

export interface ListsFillInput extends PlatformSize {
  directory: string
}

const { directory, ...size } = benchInput<ListsFillInput>()
const tables = openChdbTables(directory)
const ready: FoldedPlatform = await foldPlatform(tables, defaultDatabases, size)
serveBench({ ready, close: () => tables.close() })
