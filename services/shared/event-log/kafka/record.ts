/** A message as kafkajs has it becomes a record of the port: its bytes as they are, numbers instead of decimal text. */
import type { IHeaders, KafkaMessage } from 'kafkajs'
import type { Topic } from '../../../../contracts/events/event.ts'
import type { LogRecord, NewRecord } from '../port.ts'

export function toLogRecord(topic: Topic, partition: number, message: KafkaMessage): LogRecord {
  const { key, value, offset, timestamp, headers } = message
  const record: LogRecord = {
    topic,
    partition,
    // Both fit: 2^53 records of a partition would take a century at two million a second.
    offset: Number(offset),
    appendedAt: Number(timestamp),
    key,
    value,
  }
  if (headers && Object.keys(headers).length > 0) Object.assign(record, readHeaders(headers))
  return record
}

/** The headers that a record came with, all their values included. */
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

/** Of a header that came more than once the last value counts, as for Kafka's own clients; all are kept. */
export function readHeaders(raw: IHeaders): Pick<LogRecord, 'headers' | 'repeatedHeaders'> {
  const headers: Record<string, Uint8Array> = {}
  const repeatedHeaders: Record<string, readonly Uint8Array[]> = {}
  for (const [name, given] of Object.entries(raw)) {
    // A header may have no value in Kafka; here it has an empty one.
    const values = [given].flat().map(value => Buffer.from(value ?? ''))
    headers[name] = values.at(-1) ?? Buffer.alloc(0)
    if (values.length > 1) repeatedHeaders[name] = values
  }
  return { headers, ...(Object.keys(repeatedHeaders).length > 0 && { repeatedHeaders }) }
}
