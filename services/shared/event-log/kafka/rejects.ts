/**
 * The reject topic: records that could not be projected, as they came (key, value, headers), with headers of ours that
 * say where each stood and why it was refused.
 *
 * A reject is known by its topic, partition and offset. Put twice it is there twice, in one partition, and the first
 * counts: a reader keeps one of each.
 */
import type { KafkaMessage, Message } from 'kafkajs'
import type { Reject, StoredReject } from '../port.ts'
import { type KafkaSettings, rejectTopicName, toBuffer, topicName, topicOfName } from './client.ts'
import { partitionerBy } from './partition.ts'
import type { Producer } from './producer.ts'
import { readHeaders, writeHeaders } from './record.ts'

/** The headers that a reject has beside those that its record came with. All are text. */
export const rejectHeaders = {
  /** The topic's name in the cluster. */
  topic: 'pledgeview-topic',
  partition: 'pledgeview-partition',
  offset: 'pledgeview-offset',
  /** When the record was appended, ms since the epoch. */
  appendedAt: 'pledgeview-appended-at',
  reason: 'pledgeview-reason',
  /** Only where the value is too large to be repeated: its bytes. It is left out, and still stands in its topic. */
  omittedValueBytes: 'pledgeview-omitted-value-bytes',
} as const

type Names = Pick<KafkaSettings, 'topicPrefix'>

const reasonLengthMax = 2_000

/** Keeps rejects: resolves once they are on all replicas in sync. */
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

/** A reject that its topic does not take for its size goes without its value, so that it holds nothing up. */
async function sendAlone(producer: Producer, names: Names, reject: Reject): Promise<void> {
  const message = rejectMessage(names, reject)
  try {
    await producer.send([outgoing(names, message)])
  } catch (cause) {
    if (!isTooLarge(cause)) throw cause
    const omitted = { [rejectHeaders.omittedValueBytes]: String(reject.record.value?.length ?? 0) }
    await producer.send([
      outgoing(names, { ...message, value: null, headers: { ...message.headers, ...omitted } }),
    ])
  }
}

/** Rejects of one record meet in one partition, and those of one topic spread over all. */
export const createRejectPartitioner = partitionerBy(({ headers = {} }) => {
  const { topic, partition, offset } = rejectHeaders
  return Buffer.from([topic, partition, offset].map(name => String(headers[name])).join('/'))
})

export function rejectMessage(names: Names, { record, reason }: Reject): Message {
  const { topic, partition, offset, appendedAt, key, value } = record
  return {
    key: key && toBuffer(key),
    value: value && toBuffer(value),
    headers: {
      ...writeHeaders(record),
      [rejectHeaders.topic]: topicName(names, topic),
      [rejectHeaders.partition]: String(partition),
      [rejectHeaders.offset]: String(offset),
      [rejectHeaders.appendedAt]: String(appendedAt),
      [rejectHeaders.reason]: reason.slice(0, reasonLengthMax),
    },
  }
}

/** Reads a message of the reject topic. Throws an `Error` where it is not one that `rejectMessage` made. */
export function readReject(
  names: Names,
  { key, value, headers = {} }: KafkaMessage,
): Omit<StoredReject, 'rejectedAt'> {
  const own = new Set<string>(Object.values(rejectHeaders))
  const original = Object.fromEntries(Object.entries(headers).filter(([name]) => !own.has(name)))
  const text = (name: string): string => {
    const found = headers[name]
    if (found === undefined) throw new Error(`a message of the reject topic has no header ${name}`)
    return found.toString()
  }
  const number = (name: string): number => {
    const value = Number(text(name))
    if (!Number.isSafeInteger(value))
      throw new Error(`a message of the reject topic has no number in ${name}`)
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
