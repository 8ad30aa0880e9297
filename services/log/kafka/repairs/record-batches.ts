/**
 * Decodes what a broker answers to a fetch, in place of kafkajs. kafkajs takes quadratic time for the headers of a
 * record, unpacks a batch of any size, and fails on the first one that it cannot read. Any of these stops every
 * consumer of the topic, again at each start.
 *
 * Here a batch that cannot be read becomes one message that says why. It stands at the last offset of its batch, so the
 * consumer moves past all of them. Memory is bounded: of a batch, and of all batches of one answer.
 */
import { messageOf } from '../../../runtime/message-of.ts'
import { grouped } from '../../../runtime/progress.ts'
import { batchBytesMax, compressionOf, TooMuch, unpack } from './codecs.ts'
import { type Cursor, type FetchedHeader, type RecordFields, readRecord } from './record-fields.ts'

/** A message in the form that kafkajs gives it, as far as it is read, and what is additional here. */
export interface FetchedMessage {
  /** Offset and timestamp in ms are decimal. */
  offset: string
  timestamp: string
  key: Buffer | null
  value: Buffer | null
  headers: readonly FetchedHeader[]
  /** How many headers the record has. If it has more than `headersMax`, `headers` is empty. */
  headerCount: number
  /** kafkajs skips it. */
  isControlRecord: boolean
  /** What kafkajs needs of the batch to leave out aborted transactions. */
  batchContext: Pick<BatchHead, 'producerId' | 'inTransaction'>
  /** Why it cannot be read, and the size of what is left out: of its value, or of its packed batch. All of its headers are left out. */
  unreadable?: { reason: string; omittedValueBytes?: number }
}

/**
 * The most records and headers of a batch, counted together. Each becomes objects of some hundred bytes. A batch of the
 * largest default size, 1 MiB, has a tenth of that, even if its records are small.
 */
export const batchPartsMax = 500_000
/** The most headers of a record. Tracing and routing need a few. */
export const headersMax = 1_000
/** The most bytes of a record after decompression. JSON may have 1 MiB (contracts/events/ndjson.ts), and a broker takes 1 MiB by default. */
export const recordBytesMax = 16 * 1024 ** 2
// So that a reject names its entity, and is small nevertheless.
const keptKeyBytesMax = 4_096

/** What was decoded of one answer. All partitions of an answer share it. */
export interface Decoded {
  bytes: number
  /** Records and headers. */
  parts: number
}

// A small answer can hold many batches that unpack to much. When this is decoded, the next fetch continues.
const answerBytesMax = batchBytesMax / 2
const answerPartsMax = batchPartsMax / 2

// Two numbers of 8 and 4 bytes, which the length does not count, and 49 bytes more.
const headBytes = 61
const uncountedBytes = 12

/** kafkajs's position in an answer. All partitions of an answer share it. */
interface AnswerDecoder {
  readBytes(): Buffer | null
}

/** What kafkajs calls for each partition of an answer, in place of its own decoder. */
export function createDecodeMessages() {
  const decodedOf = new WeakMap<AnswerDecoder, Decoded>()
  return async (answer: AnswerDecoder): Promise<FetchedMessage[]> => {
    const bytes = answer.readBytes()
    if (!bytes || bytes.length <= formatAt) return []
    // Only segments that a broker before 0.11 wrote have an older format. Kafka 4 cannot have them.
    if (bytes.readInt8(formatAt) < 2) throw new Error('the topic has records in a format before Kafka 0.11')
    const decoded = decodedOf.get(answer) ?? { bytes: 0, parts: 0 }
    decodedOf.set(answer, decoded)
    return decodeBatches(bytes, decoded)
  }
}

// The byte with the format is at the same place in all formats.
const formatAt = 16

/**
 * The messages of consecutive batches. It stops before a batch that is incomplete or has another format, and when enough
 * of the answer is decoded. The next fetch begins there. Adds to `decoded`.
 */
export async function decodeBatches(batches: Buffer, decoded: Decoded): Promise<FetchedMessage[]> {
  const messages: FetchedMessage[] = []
  for (let at = 0; batches.length - at >= headBytes; ) {
    const end = at + uncountedBytes + batches.readInt32BE(at + 8)
    if (end > batches.length || batches.readInt8(at + formatAt) !== 2) break
    if (end < at + headBytes) throw new Error('a record batch is shorter than its head')
    if (decoded.bytes >= answerBytesMax || decoded.parts >= answerPartsMax) break
    // Not by spreading: the arguments of a call are limited.
    for (const message of await decodeBatch(batches.subarray(at, end), decoded)) messages.push(message)
    at = end
  }
  return messages
}

const isAppendTime = 0x08
const isTransactional = 0x10
const isControl = 0x20

async function decodeBatch(batch: Buffer, decoded: Decoded): Promise<FetchedMessage[]> {
  const head = readHead(batch)
  const messages: FetchedMessage[] = []
  try {
    const records = await unpackRecords(head, batch.subarray(headBytes))
    decoded.bytes += records.length
    try {
      decoded.parts += readMessages(head, records, messages)
    } finally {
      releaseUnused(messages, records.length)
    }
  } catch (cause) {
    if (cause instanceof TooMuch) {
      // It took as much work as the largest batch.
      decoded.bytes += batchBytesMax
      return [unreadableRest(head, batch, cause.message)]
    }
    const next = Number(messages.at(-1)?.offset ?? head.first - 1) + 1
    const from = next === head.first ? '' : ` from offset ${next} on`
    messages.push(unreadableRest(head, batch, `cannot be read${from}: ${messageOf(cause)}`))
  }
  if (messages.at(-1)?.offset !== String(head.last)) messages.push(endMarker(head))
  return messages
}

type BatchHead = ReturnType<typeof readHead>

/** What the head of a batch says. */
function readHead(batch: Buffer) {
  const attributes = batch.readInt16BE(21)
  const first = Number(batch.readBigInt64BE(0))
  const maxTimestamp = Number(batch.readBigInt64BE(35))
  return {
    first,
    last: first + Math.max(0, batch.readInt32BE(23)),
    /** `undefined` if Kafka has no such compression. */
    compression: compressionOf(attributes),
    /** The time of every record, or `undefined` if each has its own. */
    appendTime: (attributes & isAppendTime) === 0 ? undefined : maxTimestamp,
    firstTimestamp: Number(batch.readBigInt64BE(27)),
    maxTimestamp,
    producerId: String(batch.readBigInt64BE(43)),
    inTransaction: (attributes & isTransactional) !== 0,
    isControl: (attributes & isControl) !== 0,
    count: batch.readInt32BE(57),
  }
}

async function unpackRecords({ compression, count }: BatchHead, bytes: Buffer): Promise<Buffer> {
  // Compaction may leave a batch without records.
  if (count <= 0) return bytes.subarray(0, 0)
  if (compression === undefined) throw new Error('its compression is unknown')
  return unpack(compression, bytes, batchBytesMax)
}

/** Adds the messages to `messages`, up to the first damaged one. Returns the number of records and headers. */
function readMessages(head: BatchHead, records: Buffer, messages: FetchedMessage[]): number {
  const cursor: Cursor = { bytes: records, at: 0 }
  const tooMany = `has more than ${grouped(batchPartsMax)} records and headers`
  if (head.count > batchPartsMax) throw new TooMuch(tooMany)
  let parts = 0
  let before = head.first - 1
  for (let i = 0; i < head.count && before < head.last; i++) {
    const fields = readRecord(cursor, headersMax)
    const offset = head.first + fields.offsetDelta
    if (offset <= before || offset > head.last) throw new Error(`offset ${offset} comes after ${before}`)
    before = offset
    parts += 1 + fields.headers.length
    if (parts > batchPartsMax) throw new TooMuch(tooMany)
    const message = messageFrom(head, offset, fields)
    messages.push(bounded(message, fields.bytes))
  }
  return parts
}

function bounded(message: FetchedMessage, bytes: number): FetchedMessage {
  const { key, value, headerCount } = message
  if (bytes <= recordBytesMax && headerCount <= headersMax) return message
  if (bytes <= recordBytesMax) {
    const allowed = `${grouped(headersMax)} are allowed`
    return {
      ...message,
      unreadable: { reason: `the record has ${grouped(headerCount)} headers, and ${allowed}` },
    }
  }
  const reason = `the record has ${grouped(bytes)} bytes, and ${recordBytesMax / 1024 ** 2} MiB are allowed`
  return {
    ...message,
    key: key && key.length <= keptKeyBytesMax ? key : null,
    value: null,
    headers: [],
    unreadable: { reason, omittedValueBytes: value?.length ?? 0 },
  }
}

/**
 * The fields are views on the unpacked bytes, and keep all of these in memory. If the fields are less than half of them,
 * they move to a block of their own. So what is kept is at most twice what a buffer counts, even if records were too large.
 */
function releaseUnused(messages: readonly FetchedMessage[], unpackedBytes: number): void {
  let keptBytes = 0
  const fields = (message: FetchedMessage, change: (field: Buffer) => Buffer): void => {
    message.key &&= change(message.key)
    message.value &&= change(message.value)
    message.headers = message.headers.map(([name, value]) => [name, change(value)])
  }
  for (const message of messages) {
    fields(message, field => {
      keptBytes += field.length
      return field
    })
  }
  if (keptBytes >= unpackedBytes / 2) return
  const block = Buffer.allocUnsafeSlow(keptBytes)
  let end = 0
  for (const message of messages) {
    fields(message, field => {
      const start = end
      end += field.copy(block, start)
      return block.subarray(start, end)
    })
  }
}

function messageFrom(
  head: BatchHead,
  offset: number,
  fields: Omit<RecordFields, 'offsetDelta' | 'bytes'>,
): FetchedMessage {
  const { timestampDelta, key, value, headers, headerCount } = fields
  return {
    offset: String(offset),
    timestamp: String(head.appendTime ?? head.firstTimestamp + timestampDelta),
    key,
    value,
    headers,
    headerCount,
    isControlRecord: head.isControl,
    batchContext: head,
  }
}

function unreadableRest(head: BatchHead, batch: Buffer, why: string): FetchedMessage {
  const { first, last, compression = 'none' } = head
  const offsets = first === last ? `of offset ${first}` : `of offsets ${first} to ${last}`
  const packed = compression === 'none' ? '' : ` (${compression})`
  const reason = `the batch ${offsets}${packed} ${why}`
  return { ...endOf(head), unreadable: { reason, omittedValueBytes: batch.length } }
}

/**
 * kafkajs knows positions only by messages. It skips the marker, and continues after the batch. Without it, a consumer
 * hangs at a batch that compaction has emptied (tulios/kafkajs#1072).
 */
function endMarker(head: BatchHead): FetchedMessage {
  return { ...endOf(head), isControlRecord: true }
}

function endOf(head: BatchHead): FetchedMessage {
  const timestampDelta = head.maxTimestamp - head.firstTimestamp
  return messageFrom(head, head.last, {
    ...{ timestampDelta, key: null, value: null },
    headers: [],
    headerCount: 0,
  })
}
