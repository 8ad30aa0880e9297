/**
 * Transcodes an ordinary pledge from Avro to its ledger row, byte by byte: no object and no string is made of it. Nearly all
 * records are pledges, and this takes a small part of the time of decoding them.
 *
 * It knows nothing of rejects. It takes only what is certainly a pledge that keeps every rule: short ids in ASCII, integers
 * from 0 on, and no bytes after the last field. Everything else is decoded in the general way. The row is the same in both ways, for
 * any record: a property test compares them (test/unit/projector/ingest/pledge-transcoder.test.ts).
 */
import { framingBytes, schemas } from '../../../contracts/events/codec.ts'
import { countsTowardsTotals, type PledgeStatus } from '../../../contracts/events/event.ts'
import { timestampMax } from '../../../contracts/events/rules.ts'
import type { LogRecord } from '../../log/port.ts'
import type { ByteWriter } from '../../tables/clickhouse/byte-writer.ts'
import type { HashBacker } from './backer-hash.ts'
import { dayOf } from './ledger-rows.ts'

/**
 * Writes the row of a pledge and returns true, or writes nothing and returns false. The value has to be framed and written
 * with our current schema.
 */
export type PledgeTranscoder = (out: ByteWriter, record: LogRecord) => boolean

// A text up to this length has its length in one byte, in Avro and in a row.
const textBytesMax = 63
// Four texts, four integers, whether the pledge counts, and its day.
const rowBytesMax = 4 * (1 + textBytesMax) + 4 * 8 + 1 + 2
const asciiMax = 0x7f
const slash = 0x2f
// A position after the end of every value. Fields read from there are invalid, so the check of the final position fails.
const nowhere = 2 ** 30
const noReward = 0
const someReward = 2

/** Whether a status counts, by the byte that it has in Avro: its place in the schema, as an even number. */
const countsByByte = statusTable()

/**
 * A transcoder for the rows of one batch, which all have to go to one writer. `onCampaign` gets the campaign of each row at
 * least once.
 */
export function createPledgeTranscoder(
  hashBacker: HashBacker,
  onCampaign: (campaignId: string) => void,
): PledgeTranscoder {
  const isNewCampaign = createSeenCampaigns()

  return (out, { key, value, unreadable }) => {
    if (key === null || value === null || unreadable !== undefined) return false
    // The three ids come first, in another order than in the row.
    const campaignAt = afterText(value, framingBytes)
    const backerAt = afterText(value, campaignAt)
    const versionAt = afterText(value, backerAt)
    if (versionAt >= value.length) return false
    const pledgeBytes = campaignAt - framingBytes
    const campaignBytes = backerAt - campaignAt
    if (key.length !== campaignBytes - 1 + pledgeBytes) return false

    const row = out.room(rowBytesMax)
    const start = out.length
    const slashAt = campaignBytes - 1
    if (key[slashAt] !== slash) return false
    if (!copyId(value, campaignAt, row, start, key, 0)) return false
    if (!copyId(value, framingBytes, row, start + campaignBytes, key, slashAt + 1)) return false
    if (!isAscii(value, backerAt + 1, versionAt)) return false

    let to = start + campaignBytes + pledgeBytes
    let at = copyCount(value, versionAt, row, to)
    at = afterTimestamp(value, at)
    const day = dayOf(high32 * 2 ** 32 + (low32 >>> 0))
    const counts = countsByByte[value[at++] as number]
    if (counts === undefined) return false
    row[to + 8] = counts ? 1 : 0
    const hashTo = to + 9
    at = copyCount(value, at, row, hashTo + 8)
    at = copyCount(value, at, row, hashTo + 16)
    to = hashTo + 24
    const reward = value[at]
    if (reward === noReward) {
      at++
      row[to++] = 0
    } else if (reward === someReward) {
      const rewardAt = at + 1
      at = afterText(value, rewardAt)
      if (at !== value.length || !isAscii(value, rewardAt + 1, at)) return false
      to = copyText(value, rewardAt, at, row, to)
    } else {
      return false
    }
    // Every position grew from the one before, so if this is the end, no field went beyond it.
    if (at !== value.length) return false

    if (counts) {
      const { low, high } = hashBacker.ofBytes(value, backerAt + 1, versionAt - backerAt - 1)
      write32(row, hashTo, low)
      write32(row, hashTo + 4, high)
      row[to++] = day
      row[to++] = day >>> 8
    } else {
      // Neither backer nor amounts nor reward nor day.
      row.fill(0, hashTo, hashTo + 27)
      to = hashTo + 27
    }
    out.advance(to - start)
    if (isNewCampaign(row, start, campaignBytes)) {
      // Its id is ASCII.
      onCampaign(Buffer.from(row.buffer, row.byteOffset + start + 1, campaignBytes - 1).toString('latin1'))
    }
    return true
  }
}

/** The position after a text of 1 to `textBytesMax` bytes. */
function afterText(bytes: Uint8Array, at: number): number {
  const doubled = bytes[at]
  // An empty text is left to the decoder: the rules allow it only in a pledge that does not count. An odd number is negative, or goes on in the next byte if it is above `asciiMax`.
  if (doubled === undefined || doubled === 0 || doubled > asciiMax || (doubled & 1) !== 0) return nowhere
  return at + 1 + (doubled >> 1)
}

/** Copies the id at `at` with its length. Returns whether it is ASCII, has no slash, and stands in the key too. */
function copyId(
  bytes: Uint8Array,
  at: number,
  row: Uint8Array,
  to: number,
  key: Uint8Array,
  keyAt: number,
): boolean {
  const length = (bytes[at] as number) >> 1
  row[to] = length
  for (let i = 0; i < length; i++) {
    const byte = bytes[at + 1 + i] as number
    if (byte !== key[keyAt + i] || byte > asciiMax || byte === slash) return false
    row[to + 1 + i] = byte
  }
  return true
}

/** Copies the text from `at` to `end` with its length. Returns the position after it in the row. */
function copyText(bytes: Uint8Array, at: number, end: number, row: Uint8Array, to: number): number {
  const length = end - at - 1
  row[to] = length
  for (let i = 1; i <= length; i++) row[to + i] = bytes[at + i] as number
  return to + 1 + length
}

function isAscii(bytes: Uint8Array, from: number, end: number): boolean {
  for (let at = from; at < end; at++) if ((bytes[at] as number) > asciiMax) return false
  return true
}

// The halves of the integer that was read last. A record is transcoded without interruption, so all can share them.
let low32 = 0
let high32 = 0

/** Reads an integer from 0 to 2^55 - 1. Returns the position after it. */
function readCount(bytes: Uint8Array, from: number): number {
  let at = from
  let low28 = 0
  let high28 = 0
  for (let shift = 0; shift < 56; shift += 7) {
    const byte = bytes[at++] as number
    if (shift < 28) low28 |= (byte & 0x7f) << shift
    else high28 |= (byte & 0x7f) << (shift - 28)
    if (byte <= 0x7f) {
      // The lowest bit is the sign.
      low32 = (low28 >>> 1) | (high28 << 27)
      high32 = high28 >>> 5
      return (low28 & 1) === 0 ? at : nowhere
    }
  }
  return nowhere
}

function copyCount(bytes: Uint8Array, from: number, row: Uint8Array, to: number): number {
  const at = readCount(bytes, from)
  write32(row, to, low32)
  write32(row, to + 4, high32)
  return at
}

/** The position after a time from 1970 on that can be stored. */
function afterTimestamp(bytes: Uint8Array, from: number): number {
  const at = readCount(bytes, from)
  return high32 * 2 ** 32 + (low32 >>> 0) <= timestampMax ? at : nowhere
}

function write32(row: Uint8Array, at: number, value: number): void {
  row[at] = value
  row[at + 1] = value >>> 8
  row[at + 2] = value >>> 16
  row[at + 3] = value >>> 24
}

const campaignSlots = 2 ** 15

/**
 * Whether a campaign is new among the rows: a hash table of the places where one was written last. A campaign that lost its
 * slot to another one counts as new again.
 */
function createSeenCampaigns(): (rows: Uint8Array, at: number, bytes: number) => boolean {
  let places: Int32Array | undefined
  return (rows, at, bytes) => {
    places ??= new Int32Array(campaignSlots).fill(-1)
    let hash = bytes
    for (let i = 1; i < bytes; i++) hash = Math.imul(hash ^ (rows[at + i] as number), 0x01000193)
    const slot = (hash ^ (hash >>> 15)) & (campaignSlots - 1)
    const place = places[slot] as number
    let same = 0
    // The length stands before the text, so texts of other lengths differ at once.
    while (place >= 0 && same < bytes && rows[place + same] === rows[at + same]) same++
    places[slot] = at
    return same < bytes
  }
}

function statusTable(): readonly (boolean | undefined)[] {
  const { fields } = schemas.pledge as { fields: { name: string; type: { symbols?: PledgeStatus[] } }[] }
  const symbols = fields.find(({ name }) => name === 'status')?.type.symbols ?? []
  return symbols.flatMap(status => [countsTowardsTotals(status), undefined])
}
