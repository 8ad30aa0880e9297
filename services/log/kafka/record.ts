/**
 * Records of the log, to and from kafkajs: the same bytes, and numbers instead of decimal text. A message that cannot be read becomes a record
 * that says why, and nothing throws. The partition of each is the one that Kafka's Java clients choose.
 */

import type { ICustomPartitioner, Message } from 'kafkajs'
import type { Topic } from '../../../contracts/events/event.ts'
import { toBuffer } from '../../runtime/to-buffer.ts'
import type { Header, LogRecord } from '../port.ts'
import type { FetchedMessage } from './repairs/record-batches.ts'

/** What is read here of a message that our decoder made. kafkajs reads the rest. */
export type ReadMessage = Omit<FetchedMessage, 'isControlRecord' | 'batchContext'>

export function toLogRecord(topic: Topic, partition: number, message: ReadMessage): LogRecord {
  const { key, value, headers, headerCount, offset, timestamp, unreadable } = message
  const record: LogRecord = {
    topic,
    partition,
    // Both are exact: 2^53 records in a partition would take a century at two million per second.
    offset: Number(offset),
    appendedAt: exactTime(Number(timestamp)),
    key,
    value,
  }
  if (headers.length > 0) record.headers = headers
  if (!unreadable) return record
  const { reason, ...omitted } = unreadable
  return {
    ...record,
    unreadable: reason,
    ...omitted,
    ...(headerCount > 0 && { omittedHeaders: headerCount }),
  }
}

/** Producers may set any time of 64 bits. One beyond the exact numbers is stored as the nearest of them, Unix ms. */
function exactTime(ms: number): number {
  return Math.min(Math.max(ms, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
}

/** In the form of kafkajs. A header may have any name, also that of a member of every object. */
export function writeHeaders(headers: readonly Header[]): Record<string, Buffer[]> {
  const byName = Map.groupBy(headers, ([name]) => name)
  return Object.fromEntries([...byName].map(([name, all]) => [name, all.map(([, value]) => toBuffer(value))]))
}

const seed = 0x9747b28c
const multiplier = 0x5bd1e995
const shift = 24

/** The partition of a key, out of this many. */
export function partitionOf(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions
}

/** MurmurHash2, 32 bits signed, as in Kafka's `Utils.murmur2`. */
export function murmur2(bytes: Uint8Array): number {
  const { length } = bytes
  let hash = seed ^ length
  const wordsEnd = length & ~3
  for (let at = 0; at < wordsEnd; at += 4) {
    let word = byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8)
    word |= (byteAt(bytes, at + 2) << 16) | (byteAt(bytes, at + 3) << 24)
    word = Math.imul(word, multiplier)
    word = Math.imul(word ^ (word >>> shift), multiplier)
    hash = Math.imul(hash, multiplier) ^ word
  }
  const rest = length - wordsEnd
  if (rest === 3) hash ^= byteAt(bytes, wordsEnd + 2) << 16
  if (rest >= 2) hash ^= byteAt(bytes, wordsEnd + 1) << 8
  if (rest >= 1) hash = Math.imul(hash ^ byteAt(bytes, wordsEnd), multiplier)
  hash = Math.imul(hash ^ (hash >>> 13), multiplier)
  return hash ^ (hash >>> 15)
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0
}

/**
 * Marks records that are not in the partition of their key. A producer with another partitioner wrote them, or the topic
 * got more partitions later. It needs no memory of earlier records, and costs about 0.1 µs for each.
 */
export function markMisplaced(records: readonly LogRecord[], partitions: number): void {
  for (const record of records) {
    if (record.key !== null && partitionOf(record.key, partitions) !== record.partition)
      record.isMisplaced = true
  }
}

/**
 * Partitions by the record's key. It chooses a message's partition once. Messages without a key are distributed in turn.
 *
 * When kafkajs repeats a request to one of several brokers, it asks again for the partitions of all messages. If a
 * message then got another partition, it could belong to a broker that has already answered, and it would be lost.
 */
export const createPartitioner: ICustomPartitioner = () => {
  const given = new WeakMap<Message, number>()
  let turn = 0
  return ({ partitionMetadata, message }) => {
    const known = given.get(message)
    if (known !== undefined) return known
    const count = partitionMetadata.length
    const { key } = message
    const partition = key == null ? turn++ % count : partitionOf(Buffer.from(key), count)
    given.set(message, partition)
    return partition
  }
}
