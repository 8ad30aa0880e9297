/**
 * Makes a record of the port from a message of kafkajs: the same bytes, and numbers instead of decimal text. It never
 * throws. A message that is not a record, or has too many headers, becomes a record that says why it cannot be read.
 */
import type { Topic } from '../../../contracts/events/event.ts'
import { grouped } from '../../runtime/progress.ts'
import type { Header, LogRecord } from '../port.ts'
import { toBuffer } from './client.ts'
import type { FetchedMessage } from './repairs/record-batches.ts'

/** The most headers of a record. Tracing and routing need a few. */
export const headersMax = 1_000

/** What is read of a message that our decoder made. */
export type ReadMessage = Pick<
  FetchedMessage,
  'key' | 'value' | 'offset' | 'timestamp' | 'headers' | 'headerCount' | 'unreadable'
>

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
  return Object.assign(record, boundedHeaders(message))
}

/** Producers may set any time of 64 bits. One beyond the exact numbers is stored as the nearest of them, Unix ms. */
function exactTime(ms: number): number {
  return Math.min(Math.max(ms, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
}

function boundedHeaders({ headers, headerCount }: ReadMessage): Partial<LogRecord> {
  if (headerCount > headersMax) {
    const allowed = `${grouped(headersMax)} are allowed`
    return { unreadable: `the record has ${grouped(headerCount)} headers, and ${allowed}` }
  }
  return headers.length > 0 ? { headers } : {}
}

/** In the form of kafkajs. A header may have any name, also that of a member of every object. */
export function writeHeaders(headers: readonly Header[]): Record<string, Buffer[]> {
  const byName = Map.groupBy(headers, ([name]) => name)
  return Object.fromEntries([...byName].map(([name, all]) => [name, all.map(([, value]) => toBuffer(value))]))
}
