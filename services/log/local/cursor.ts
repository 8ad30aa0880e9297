/**
 * A position in one topic of the journal, and the fast way to read on from it.
 *
 * Node makes an object of every column and a buffer of every blob. That costs several times what SQLite needs to read
 * them. So SQLite concatenates the records of a slice, and they are split here as views on one buffer. A record that
 * is kept keeps the whole buffer of its slice in memory.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Topic } from '../../../contracts/events/event.ts'
import type { LogRecord } from '../port.ts'
import { endOf, onlyPartition, recordsTable } from './file.ts'

export type Cursor = ReturnType<typeof openCursor>

const numbersPerRecord = 4
const noBytes = -1

export function openCursor(db: DatabaseSync, topic: Topic, next: number) {
  const rows = `FROM ${recordsTable[topic]} WHERE offset >= ? ORDER BY offset LIMIT ?`
  // length() reads only a row's header, so measuring costs a third of reading.
  const measure = db.prepare(
    `SELECT count(*) AS row_count, sum(bytes) AS bytes
     FROM (SELECT ifnull(length(key), 0) + ifnull(length(value), 0) AS bytes ${rows})`,
  )
  // Both aggregates take the same row at each step, so the numbers and the bytes have the same order.
  const read = db.prepare(
    `SELECT
       group_concat(concat_ws(',', offset, appended_at, ifnull(length(key), ${noBytes}), ifnull(length(value), ${noBytes}))) AS numbers,
       CAST(group_concat(ifnull(key, x'') || ifnull(value, x''), '') AS BLOB) AS bytes
     FROM (SELECT * ${rows})`,
  )
  return {
    topic,
    /** The offset to read next. */
    next,
    /** When the last record that was read entered the log, Unix ms; 0: none was read. */
    lastAt: 0,
    /** For how many polls in a row the topic got nothing because there was no room. */
    passedOver: 0,
    /** How many records come next, up to `rowsMax`, and the bytes of their keys and values. If none comes, moves to the end. */
    measure(rowsMax: number) {
      // Read first, so that a record that is appended meanwhile is not passed over.
      const end = endOf(db, topic)
      const row = measure.get(this.next, rowsMax)
      const rows = Number(row?.row_count)
      // A compaction may have removed the last records.
      if (rows === 0) this.next = Math.max(this.next, end)
      return { rows, bytes: Number(row?.bytes) }
    },
    /** Returns the next records, up to `rowsMax`, and moves behind them. Blocks the thread meanwhile. */
    read(rowsMax: number): LogRecord[] {
      const row = read.get(this.next, rowsMax)
      const records = row?.bytes instanceof Uint8Array ? takeApart(topic, `${row.numbers}`, row.bytes) : []
      const last = records.at(-1)
      if (last) {
        this.next = last.offset + 1
        this.lastAt = last.appendedAt
      }
      return records
    },
  }
}

/** `numbers`: offset, time, length of key and length of value (-1: null), for one record after the other. */
function takeApart(topic: Topic, numbers: string, bytes: Uint8Array): LogRecord[] {
  const all = JSON.parse(`[${numbers}]`) as number[]
  const { buffer, byteOffset } = bytes
  const records: LogRecord[] = []
  let at = byteOffset
  // A view is made by its constructor: `subarray` takes twice the time.
  for (let i = 0; i < all.length; i += numbersPerRecord) {
    const offset = all[i] as number
    const appendedAt = all[i + 1] as number
    const keyBytes = all[i + 2] as number
    const valueBytes = all[i + 3] as number
    const key = keyBytes === noBytes ? null : new Uint8Array(buffer, at, keyBytes)
    at += Math.max(keyBytes, 0)
    const value = valueBytes === noBytes ? null : new Uint8Array(buffer, at, valueBytes)
    at += Math.max(valueBytes, 0)
    records.push({ topic, partition: onlyPartition, offset, appendedAt, key, value })
  }
  return records
}
