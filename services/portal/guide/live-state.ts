/**
 * The live state of the first page, from the tables. Anyone may open that page, so a reading is kept for some seconds, one
 * runs at a time, and none waits for longer than the bound. After a failed reading the last good one is not shown as the
 * present: the page says that the data cannot be read.
 */
import { kept } from '../../runtime/kept.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { within } from '../../runtime/within.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'

/** What the first page says of the data. */
export interface LiveState {
  status: 'Up to date' | 'Behind' | 'Unavailable'
  campaigns: number | undefined
  /** The watermark, Unix ms: every change up to this moment can be read. */
  as_of: number | undefined
}

/** How long a reading is kept, ms. */
const keptMs = 10_000
const readMsMax = 3_000
/** A watermark that is this old means that changes take longer than they should, ms. */
const behindMs = 120_000

/** A function that never rejects. */
export function createLiveState(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  runtime: Pick<Runtime, 'monotonicMs' | 'logger'>,
): () => Promise<LiveState> {
  async function read(): Promise<LiveState> {
    const rows = tables.rows<LiveRow>(liveStatement(databases), { signal: AbortSignal.timeout(readMsMax) })
    const [row] = await within(readMsMax, rows)
    if (row === undefined) throw new Error('the tables gave no row')
    const isBehind = row.read_at - row.as_of > behindMs
    return { status: isBehind ? 'Behind' : 'Up to date', campaigns: row.campaigns, as_of: row.as_of }
  }

  function unavailable(error: unknown): LiveState {
    runtime.logger.warn(`the live state of the first page cannot be read: ${messageOf(error)}`)
    return { status: 'Unavailable', campaigns: undefined, as_of: undefined }
  }

  return kept(() => read().catch(unavailable), { ms: keptMs }, runtime)
}

interface LiveRow {
  campaigns: number
  as_of: number
  read_at: number
}

/**
 * One row. `platform_totals` would count the backers of the whole ledger for it; the number of campaigns needs no more than
 * their keys.
 */
function liveStatement({ model, views }: Databases): Statement {
  return {
    query: `SELECT
    (SELECT count() FROM ${views}.campaigns) AS campaigns,
    toUnixTimestamp64Milli(ifNull((SELECT reached FROM ${model}.watermark), toDateTime64(0, 3, 'UTC'))) AS as_of,
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS read_at
SETTINGS max_execution_time = ${readMsMax / 1000}`,
  }
}
