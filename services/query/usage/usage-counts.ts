/**
 * The counts of one query process, by key and minute, in memory. No input or output, and no allocation for a request whose
 * key was counted before in the same minute.
 *
 * Promise: however often and in whatever order rows are written, the table's sums end as the number of counted requests.
 * - A row carries the sum so far, and a higher version each time, so a repeated or late insert changes nothing.
 * - No two rows of different requests have one name. A minute is counted once, and if the clock steps back, the process
 *   counts on under another name.
 *
 * Memory: this minute and the one before. What could not be written by then is lost; `onLost` gets how many requests that are at most.
 */

import { invariant } from '../../runtime/ops/invariants.ts'

export const minuteMs = 60_000

/** A row without requests. `minute`: Unix minutes. `process`: the name under which the process counts it. */
function newRow(key: string, minute: number, process: string) {
  return {
    ...{ key, minute, process },
    ...{ ok: 0, not_modified: 0, unauthorized: 0, too_many: 0, other: 0, deprecated: 0 },
    /** All of them; `deprecated` is a part. */
    requests: 0,
    /** How many of the requests the table has for certain. */
    written: 0,
  }
}

type UsageRow = ReturnType<typeof newRow>

/** A row to write now, and how many requests it has at this moment. */
export interface Unwritten {
  row: UsageRow
  requests: number
}

/** `process`: the name of the process. No other run may have it. */
export function createUsageCounts(process: string, onLost: (requests: number) => void, now: () => number) {
  let current = { minute: Math.floor(now() / minuteMs), process, rows: new Map<string, UsageRow>() }
  let before: typeof current.rows = new Map()
  let stepsBack = 0

  function begin(minute: number): void {
    for (const { requests, written } of before.values()) onLost(requests - written)
    if (minute < current.minute) stepsBack++
    before = current.rows
    current = { minute, process: stepsBack === 0 ? process : `${process}.${stepsBack}`, rows: new Map() }
  }

  function add(key: string): UsageRow {
    const { minute, process, rows } = current
    const row = newRow(key, minute, process)
    rows.set(key, row)
    return row
  }

  return {
    /** Returns how many requests the key has had in this minute. */
    count(key: string, status: number, isDeprecated: boolean): number {
      const minute = Math.floor(now() / minuteMs)
      if (minute !== current.minute) begin(minute)
      const row = current.rows.get(key) ?? add(key)
      row.requests++
      if (isDeprecated) row.deprecated++
      if (status === 200) row.ok++
      else if (status === 304) row.not_modified++
      else if (status === 401) row.unauthorized++
      else if (status === 429) row.too_many++
      else row.other++
      return row.requests
    },

    /** The rows that have requests which the table lacks, oldest first. */
    unwritten: (): Unwritten[] =>
      [...before.values(), ...current.rows.values()]
        .filter(({ requests, written }) => requests > written)
        .map(row => ({ row, requests: row.requests })),

    /** The table has these. */
    confirm(written: readonly Unwritten[]): void {
      for (const { row, requests } of written) {
        row.written = requests
        invariant('usage-written', row.written <= row.requests)
      }
    },
  }
}
