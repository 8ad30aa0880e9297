/**
 * The counts of one query process, by key and minute, in memory. No input or output, and no allocation for a request whose
 * key was counted before in the same minute.
 *
 * Promise: whatever is written how often and in whatever order, the table's sums end as the number of counted requests.
 * - A row carries the sum so far, and a higher version each time, so a repeated or late insert changes nothing.
 * - No two rows of different requests have one name. A minute is counted once, and if the clock steps back, the process
 *   counts on under another name.
 *
 * Memory: at most `rowsMax` rows. A row leaves when its minute is over and the table has it. While nothing can be written,
 * rows of earlier minutes that were never sent are summed by key and day, at the key's latest minute. The sums of a day and
 * the last use stay right. If that is not enough, requests of further keys are not counted, and `lost` says how many.
 */

export interface UsageRow {
  readonly key: string
  /** Unix minutes. */
  readonly minute: number
  /** The name under which the process counted it. */
  readonly process: string
  ok: number
  not_modified: number
  unauthorized: number
  too_many: number
  other: number
  deprecated: number
  /** All of them; `deprecated` is a part. */
  requests: number
  /** How many of the requests the table has for certain. */
  written: number
  /** Whether an insert with this row was sent: the table may have it. */
  isSent: boolean
}

/** Rows to write now, and how many requests each of them has at this moment. */
export interface UsageBatch {
  rows: readonly UsageRow[]
  requests: readonly number[]
}

export interface UsageCounts {
  count(key: string, status: number, isDeprecated: boolean): void
  /** The rows that have requests which the table lacks, oldest first. */
  unwritten(): UsageRow[]
  /** These rows as they are now, to be inserted: from here on the table may have them. */
  send(rows: readonly UsageRow[]): UsageBatch
  /** The table has these rows. */
  confirm(batch: UsageBatch): void
  /** Makes room if more than half of it is used. Returns how many rows it summed into others. */
  sum(): number
  /** Rows in memory. */
  size(): number
  /** Requests that were not counted because the memory was full. */
  lost(): number
}

export interface UsageCountsOptions {
  /** The name of the process. No other run may have it. */
  process: string
  rowsMax: number
  /** Unix milliseconds. */
  now: () => number
}

const minuteMs = 60_000
const minutesOfDay = 1_440

interface Minute {
  minute: number
  process: string
  rows: Map<string, UsageRow>
}

export function createUsageCounts({ process, rowsMax, now }: UsageCountsOptions): UsageCounts {
  let current: Minute = { minute: Math.floor(now() / minuteMs), process, rows: new Map() }
  /** In the order in which they began; the current one is the last. */
  let minutes: Minute[] = [current]
  let stepsBack = 0
  let size = 0
  let lost = 0

  function begin(minute: number): void {
    if (minute < current.minute) stepsBack++
    const name = stepsBack === 0 ? process : `${process}.${stepsBack}`
    if (current.rows.size === 0) minutes.pop()
    current = { minute, process: name, rows: new Map() }
    minutes.push(current)
  }

  function add(key: string): UsageRow | undefined {
    if (size >= rowsMax) {
      lost++
      return undefined
    }
    size++
    const row: UsageRow = {
      key,
      minute: current.minute,
      process: current.process,
      ok: 0,
      not_modified: 0,
      unauthorized: 0,
      too_many: 0,
      other: 0,
      deprecated: 0,
      requests: 0,
      written: 0,
      isSent: false,
    }
    current.rows.set(key, row)
    return row
  }

  function dropEmpty(): void {
    minutes = minutes.filter(({ rows }) => rows === current.rows || rows.size > 0)
  }

  return {
    count(key, status, isDeprecated) {
      const minute = Math.floor(now() / minuteMs)
      if (minute !== current.minute) begin(minute)
      const row = current.rows.get(key) ?? add(key)
      if (row === undefined) return
      row.requests++
      if (isDeprecated) row.deprecated++
      if (status === 200) row.ok++
      else if (status === 304) row.not_modified++
      else if (status === 401) row.unauthorized++
      else if (status === 429) row.too_many++
      else row.other++
    },

    unwritten() {
      const unwritten: UsageRow[] = []
      for (const { rows } of minutes) {
        for (const row of rows.values()) if (row.requests > row.written) unwritten.push(row)
      }
      return unwritten
    },

    send(rows) {
      for (const row of rows) row.isSent = true
      return { rows, requests: rows.map(row => row.requests) }
    },

    confirm(batch) {
      for (const [index, row] of batch.rows.entries()) row.written = batch.requests[index] ?? 0
      for (const { rows } of minutes) {
        if (rows === current.rows) continue
        for (const row of rows.values()) {
          if (row.requests > row.written) continue
          rows.delete(row.key)
          size--
        }
      }
      dropEmpty()
    },

    sum() {
      if (size <= rowsMax / 2) return 0
      const before = size
      // For each day: each key's row of the latest minute.
      const days = new Map<number, Map<string, UsageRow>>()
      for (const { minute, rows } of minutes.toReversed()) {
        if (rows === current.rows) continue
        const day = Math.floor(minute / minutesOfDay)
        const latest = days.get(day) ?? new Map<string, UsageRow>()
        days.set(day, latest)
        for (const row of rows.values()) {
          // The table may have this row, so its requests must stay in it.
          if (row.isSent) continue
          const into = latest.get(row.key)
          if (into) {
            addTo(into, row)
            rows.delete(row.key)
            size--
          } else latest.set(row.key, row)
        }
      }
      dropEmpty()
      return before - size
    },

    size: () => size,
    lost: () => lost,
  }
}

function addTo(into: UsageRow, row: UsageRow): void {
  into.ok += row.ok
  into.not_modified += row.not_modified
  into.unauthorized += row.unauthorized
  into.too_many += row.too_many
  into.other += row.other
  into.deprecated += row.deprecated
  into.requests += row.requests
}
