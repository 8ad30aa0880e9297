/**
 * Reads the records inside a batch of Kafka's record format, version 2, which all supported brokers store.
 *
 * The time and memory that a record takes grow with its bytes, and no faster.
 */

/** A position in bytes, which moves while it is read. */
export interface Cursor {
  readonly bytes: Buffer
  at: number
}

export type FetchedHeader = readonly [name: string, value: Buffer]

/** What a record itself says. */
export type RecordFields = ReturnType<typeof readRecord>

/**
 * Reads the next record. Offset and time are relative to those of its batch. `headerCount` counts repeated names, `bytes` is the size
 * of the record. If it has more than `headersMax` headers, they are left out. Throws if it is damaged.
 */
export function readRecord(cursor: Cursor, headersMax: number) {
  const length = readVarint(cursor)
  const end = cursor.at + length
  if (length < 0 || end > cursor.bytes.length) throw new Error('a record is longer than its batch')
  // One byte of attributes. None is defined.
  cursor.at++
  const timestampDelta = readVarint(cursor)
  const offsetDelta = readVarint(cursor)
  const key = readBytes(cursor)
  const value = readBytes(cursor)
  const headerCount = readVarint(cursor)
  if (headerCount < 0 || headerCount > length)
    throw new Error('a record claims more headers than it has bytes')
  const headers = headerCount === 0 || headerCount > headersMax ? [] : readHeaders(cursor, headerCount)
  if (cursor.at > end) throw new Error('a field goes beyond its record')
  cursor.at = end
  return { offsetDelta, timestampDelta, key, value, headers, headerCount, bytes: length }
}

function readHeaders(cursor: Cursor, count: number): FetchedHeader[] {
  const headers: FetchedHeader[] = []
  for (let i = 0; i < count; i++) {
    const name = readBytes(cursor)?.toString()
    if (name === undefined) throw new Error('a header has no name')
    // In Kafka a header may have no value. Here it has an empty one.
    headers.push([name, readBytes(cursor) ?? Buffer.alloc(0)])
  }
  return headers
}

/** A view on the next bytes, after their length. A length of -1 is null. */
function readBytes(cursor: Cursor): Buffer | null {
  const length = readVarint(cursor)
  if (length === -1) return null
  const { bytes, at } = cursor
  const end = at + length
  if (length < 0 || end > bytes.length) throw new Error('a field goes beyond its batch')
  cursor.at = end
  return bytes.subarray(at, end)
}

/**
 * A whole number, seven bits at a time from the lowest, with its sign in the lowest bit. It is exact up to 2^52, and beyond that it is the
 * nearest number: only a time can be so far from the first of its batch.
 */
function readVarint(cursor: Cursor): number {
  const { bytes } = cursor
  let { at } = cursor
  // A number that is not exact has lost this bit.
  const isNegative = ((bytes[at] ?? 0) & 1) === 1
  let raw = 0
  let factor = 1
  for (;;) {
    const byte = bytes[at++]
    if (byte === undefined) throw new Error('a number goes beyond its batch')
    raw += (byte & 0x7f) * factor
    if (byte < 0x80) break
    factor *= 128
    if (factor > maxFactor) throw new Error('a number has more than ten bytes')
  }
  cursor.at = at
  return isNegative ? -(raw + 1) / 2 : raw / 2
}

const maxFactor = 128 ** 9
