/**
 * The live state of the first page, from the tables. Anyone may open that page, so a reading is kept for some seconds, one
 * runs at a time, and none waits for longer than the bound. After a failed reading the last good one is not shown as the
 * present: the page says that the data cannot be read.
 */
import { messageOf } from '../../runtime/message-of.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import type { LiveState, LiveStateReader } from '../ports.ts'

export interface LiveStateDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** Unix milliseconds. */
  now: () => number
  warn?: (message: string) => void
}

/** How long a reading is kept, ms. */
const keptMs = 10_000
const readMsMax = 3_000
/** A watermark that is this old means that changes take longer than they should, ms. */
const behindMs = 120_000

export function createLiveStateReader(dependencies: LiveStateDependencies): LiveStateReader {
  const { tables, databases, now, warn = () => {} } = dependencies
  let kept: { state: LiveState; until: number } | undefined
  let running: Promise<LiveState> | undefined

  async function readNow(): Promise<LiveState> {
    try {
      const signal = AbortSignal.timeout(readMsMax)
      const rows = tables.rows<LiveRow>(liveStatement(databases), { signal })
      const [row] = await Promise.race([rows, rejectOn(signal)])
      if (row === undefined) throw new Error('the tables gave no row')
      const isBehind = row.read_at - row.as_of > behindMs
      return { status: isBehind ? 'behind' : 'up to date', campaigns: row.campaigns, as_of: row.as_of }
    } catch (error) {
      warn(`the live state of the first page cannot be read: ${messageOf(error)}`)
      return { status: 'unavailable', campaigns: undefined, as_of: undefined }
    }
  }

  return {
    async read() {
      if (kept && now() < kept.until) return kept.state
      running ??= readNow().then(state => {
        kept = { state, until: now() + keptMs }
        running = undefined
        return state
      })
      return running
    },
  }
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
function liveStatement({ views }: Databases): Statement {
  return {
    query: `SELECT
    (SELECT count() FROM ${views}.campaigns) AS campaigns,
    toUnixTimestamp64Milli((SELECT as_of FROM ${views}.about)) AS as_of,
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS read_at
SETTINGS max_execution_time = ${readMsMax / 1000}`,
  }
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
