/**
 * Makes a record of the port from a message of kafkajs: the same bytes, and numbers instead of decimal text. It never
 * throws. A message that is not a record, or has too many headers, becomes a record that says why it cannot be read.
 */
import type { IHeaders, KafkaMessage } from 'kafkajs'
import type { Topic } from '../../../contracts/events/event.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { grouped } from '../../runtime/progress.ts'
import type { LogRecord, NewRecord } from '../port.ts'
import type { Unreadable } from './repairs/record-batches.ts'
import type { RawHeaders } from './repairs/record-fields.ts'

/** The most headers of a record. Tracing and routing need a few. */
export const headersMax = 1_000

/** A message from kafkajs, with what our decoder adds. */
export interface ReadMessage extends Pick<KafkaMessage, 'key' | 'value' | 'offset' | 'timestamp'> {
  headers?: IHeaders | RawHeaders
  headerCount?: number
  unreadable?: Unreadable
}

export function toLogRecord(topic: Topic, partition: number, message: ReadMessage): LogRecord {
  const { key, value, offset, timestamp, unreadable } = message
  const record: LogRecord = {
    topic,
    partition,
    // Both are exact: 2^53 records in a partition would take a century at two million per second.
    offset: Number(offset),
    appendedAt: exactTime(Number(timestamp)),
    key,
    value,
  }
  if (unreadable) {
    const { reason, omittedValueBytes } = unreadable
    return { ...record, unreadable: reason, ...(omittedValueBytes !== undefined && { omittedValueBytes }) }
  }
  try {
    return Object.assign(record, boundedHeaders(message))
  } catch (cause) {
    return { ...record, unreadable: `the headers cannot be read: ${messageOf(cause)}` }
  }
}

/** Producers may set any time of 64 bits. One beyond the exact numbers is stored as the nearest of them, Unix ms. */
function exactTime(ms: number): number {
  return Math.min(Math.max(ms, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
}

function boundedHeaders({ headers, headerCount = 0 }: ReadMessage): Partial<LogRecord> {
  if (headerCount > headersMax) {
    const allowed = `${grouped(headersMax)} are allowed`
    return { unreadable: `the record has ${grouped(headerCount)} headers, and ${allowed}` }
  }
  return headers && Object.keys(headers).length > 0 ? readHeaders(headers) : {}
}

/** The original headers of a record, with all their values. */
export function writeHeaders({
  headers = {},
  repeatedHeaders = {},
}: Pick<NewRecord, 'headers' | 'repeatedHeaders'>): Record<string, Buffer | Buffer[]> {
  const single = Object.entries(headers).map(([name, value]) => [name, Buffer.from(value)])
  const repeated = Object.entries(repeatedHeaders).map(([name, values]) => [
    name,
    values.map(value => Buffer.from(value)),
  ])
  return Object.fromEntries([...single, ...repeated])
}

/**
 * If a header is repeated, its last value counts, as in Kafka's own clients. All values are kept. A header may have any
 * name, also that of a member of every object, so the objects have no prototype.
 */
export function readHeaders(raw: IHeaders | RawHeaders): Pick<LogRecord, 'headers' | 'repeatedHeaders'> {
  const headers: Record<string, Uint8Array> = Object.create(null)
  const repeatedHeaders: Record<string, readonly Uint8Array[]> = Object.create(null)
  for (const [name, given] of Object.entries(raw)) {
    // In Kafka a header may have no value. Here it has an empty one.
    const values = [given].flat().map(value => (Buffer.isBuffer(value) ? value : Buffer.from(value ?? '')))
    headers[name] = values.at(-1) ?? Buffer.alloc(0)
    if (values.length > 1) repeatedHeaders[name] = values
  }
  return { headers, ...(Object.keys(repeatedHeaders).length > 0 && { repeatedHeaders }) }
}
