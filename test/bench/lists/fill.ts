/** Fills the list bench's tables once. The bench's processes then open the data directory one after the other. */

import { defaultDatabases } from '../../../services/tables/generations.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { type FoldedPlatform, foldPlatform } from '../platform/fold.ts'
import type { PlatformSize } from '../platform/platform.ts'

export interface ListsFillInput extends PlatformSize {
  directory: string
}

const { directory, ...size } = benchInput<ListsFillInput>()
const { tables, close } = await openOwnTables({ directory })
const ready: FoldedPlatform = await foldPlatform(tables, defaultDatabases, size)
serveBench({ ready, close })
