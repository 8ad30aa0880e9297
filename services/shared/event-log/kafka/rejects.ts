/**
 * The reject topic (dead-letter queue): records that could not be projected, with their original key, value and
 * headers. Additional headers say where each record stood and why it was rejected.
 *
 * A reject is identified by topic, partition and offset. If it is stored twice, both messages are in the same
 * partition, and readers keep the first.
 */
import type { Message } from 'kafkajs'
import { grouped } from '../../progress.ts'
import type { Reject, StoredReject } from '../port.ts'
import { type KafkaSettings, rejectTopicName, toBuffer, topicName, topicOfName } from './client.ts'
import { partitionerBy } from './partition.ts'
import type { Producer } from './producer.ts'
import { type ReadMessage, readHeaders, writeHeaders } from './record.ts'
import { decodedHeadersMax } from './record-batches.ts'

/** The headers that a reject has in addition to the original ones. All are text. */
export const rejectHeaders = {
  /** The topic's name in the cluster. */
  topic: 'pledgeview-topic',
  partition: 'pledgeview-partition',
  offset: 'pledgeview-offset',
  /** When the record was appended, ms since the epoch. */
  appendedAt: 'pledgeview-appended-at',
  reason: 'pledgeview-reason',
  /**
   * Only if the value is too large to be stored again: its size in bytes. The value is left out; it is still in its
   * own topic.
   */
  omittedValueBytes: 'pledgeview-omitted-value-bytes',
} as const

type Names = Pick<KafkaSettings, 'topicPrefix'>

const reasonLengthMax = 2_000

/** Stores rejects. Resolves when they are on all replicas in sync. */
export async function sendRejects(
  producer: Producer,
  names: Names,
  rejects: readonly Reject[],
): Promise<void> {
  try {
    await producer.send(rejects.map(reject => outgoing(names, rejectMessage(names, reject))))
  } catch (cause) {
    if (!isTooLarge(cause)) throw cause
    for (const reject of rejects) await sendAlone(producer, names, reject)
  }
}

/** If a reject is too large for its topic, it is stored without its value, so that it holds up nothing. */
async function sendAlone(producer: Producer, names: Names, reject: Reject): Promise<void> {
  const message = rejectMessage(names, reject)
  try {
    await producer.send([outgoing(names, message)])
  } catch (cause) {
    if (!isTooLarge(cause)) throw cause
    await producer.send([outgoing(names, rejectMessage(names, withoutValue(reject)))])
  }
}

function withoutValue({ record, reason }: Reject): Reject {
  return { record: { ...record, value: null, omittedValueBytes: record.value?.length ?? 0 }, reason }
}

/** All rejects of one record go to the same partition. The rejects of one topic go to all partitions. */
export const createRejectPartitioner = partitionerBy(({ headers = {} }) => {
  const { topic, partition, offset } = rejectHeaders
  return Buffer.from([topic, partition, offset].map(name => String(headers[name])).join('/'))
})

export function rejectMessage(names: Names, { record, reason }: Reject): Message {
  const { topic, partition, offset, appendedAt, key, value, omittedValueBytes } = record
  return {
    key: key && toBuffer(key),
    value: value && toBuffer(value),
    headers: {
      // Of two headers with one name, a reader could take the wrong one. So a header that is named like ours is left out.
      ...Object.fromEntries(Object.entries(writeHeaders(record)).filter(([name]) => !ownNames.has(name))),
      [rejectHeaders.topic]: topicName(names, topic),
      [rejectHeaders.partition]: String(partition),
      [rejectHeaders.offset]: String(offset),
      [rejectHeaders.appendedAt]: String(appendedAt),
      [rejectHeaders.reason]: reason.slice(0, reasonLengthMax),
      ...(omittedValueBytes !== undefined && {
        [rejectHeaders.omittedValueBytes]: String(omittedValueBytes),
      }),
    },
  }
}

const ownNames: ReadonlySet<string> = new Set(Object.values(rejectHeaders))

/** Reads a message of the reject topic. Throws an `Error` if `rejectMessage` did not make it. */
export function readReject(
  names: Names,
  { key, value, headers = {}, headerCount = 0, unreadable }: ReadMessage,
): Omit<StoredReject, 'rejectedAt'> {
  if (unreadable) throw new Error(unreadable.reason)
  if (headerCount > decodedHeadersMax)
    throw new Error(`a message of the reject topic has ${grouped(headerCount)} headers`)
  const original = Object.fromEntries(Object.entries(headers).filter(([name]) => !ownNames.has(name)))
  const text = (name: string): string => {
    const found = headers[name]
    if (found == null) throw new Error(`a message of the reject topic has no header ${name}`)
    return found.toString()
  }
  const number = (name: string): number => {
    const value = Number(text(name))
    // Producers set the times of records, so a time may be beyond 2^53.
    if (!Number.isInteger(value)) throw new Error(`a message of the reject topic has no number in ${name}`)
    return value
  }
  return {
    record: {
      topic: topicOfName(names, text(rejectHeaders.topic)),
      partition: number(rejectHeaders.partition),
      offset: number(rejectHeaders.offset),
      appendedAt: number(rejectHeaders.appendedAt),
      key,
      value,
      ...(Object.keys(original).length > 0 && readHeaders(original)),
    },
    reason: text(rejectHeaders.reason),
    ...(headers[rejectHeaders.omittedValueBytes] !== undefined && {
      omittedValueBytes: number(rejectHeaders.omittedValueBytes),
    }),
  }
}

function outgoing(names: Names, message: Message) {
  return { topic: rejectTopicName(names), message }
}

function isTooLarge(cause: unknown): boolean {
  return cause instanceof Error && 'type' in cause && cause.type === 'MESSAGE_TOO_LARGE'
}
