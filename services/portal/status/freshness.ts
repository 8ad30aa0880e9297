/**
 * The freshness of the data over 90 days: measured once a minute by each portal, with the same reading as the first page, and kept in a
 * table. What could not be written waits for a week, while the process runs, so an outage of the tables is told after it. A minute in
 * which no portal ran is not measured, and the page says so.
 */
import { kept } from '../../runtime/async/kept.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/sql-text.ts'
import type { LiveState } from '../guide/readings.ts'
import { readRows } from '../reading.ts'

/** Measured minutes. */
export interface Minutes {
  fresh: number
  behind: number
  /** The data could not be read. */
  away: number
}

export interface Freshness {
  /** The last 90 UTC days, oldest first. */
  days: readonly (Minutes & { day: string })[]
  /** Two or more minutes in a row that were not fresh, the latest first. Unix ms. */
  incidents: readonly (Omit<Minutes, 'fresh'> & { began_at: number; last_at: number })[]
}

const minuteMs = 60_000
/** Minutes. */
const waitingMax = 7 * 24 * 60
const writeMsMax = 12_000
const states: readonly LiveState['status'][] = ['Up to date', 'Behind', 'Unavailable']
const columns = [
  { name: 'minute', type: "DateTime64(3, 'UTC')" },
  { name: 'state', type: 'UInt8' },
]
const sql = { days: readSql('days', import.meta.url), incidents: readSql('incidents', import.meta.url) }

export function createFreshness(
  place: { tables: Pick<Tables, 'rows' | 'insert'>; databases: Databases },
  liveState: () => Promise<LiveState>,
  { now, monotonicMs }: Pick<Runtime, 'now' | 'monotonicMs'>,
) {
  const waiting: [minute: number, state: number][] = []
  const minuteNow = () => Math.floor(now() / minuteMs) * minuteMs
  // The minute of the start is not measured: nothing may be there yet.
  let last = minuteNow()

  async function readAll(): Promise<Freshness> {
    const read = <Row>(text: string) => readRows<Row>(place, text)
    return { days: await read(sql.days), incidents: await read(sql.incidents) }
  }

  return {
    /** Anyone may open the page, so a reading is kept for a while. Rejects if the tables do not answer. */
    read: kept(readAll, { ms: minuteMs }, { monotonicMs }),

    /** Measures this minute unless it was measured, and writes what waits. */
    async measure(): Promise<void> {
      const minute = minuteNow()
      if (minute !== last) {
        last = minute
        const { status, as_of } = await liveState()
        // Before the first fold nothing is behind.
        if (as_of !== undefined || status === 'Unavailable') waiting.push([minute, states.indexOf(status)])
        if (waiting.length > waitingMax) waiting.shift()
      }
      const rows = waiting.slice()
      if (rows.length === 0) return
      const table = `${place.databases.base}.freshness`
      await place.tables.insert(
        { table, columns, rows: encodeRows(columns, rows) },
        { signal: AbortSignal.timeout(writeMsMax) },
      )
      waiting.splice(0, rows.length)
    },
  }
}
