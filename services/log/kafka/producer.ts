/**
 * A reliable producer: idempotent, acknowledged by all replicas in sync, with bounded retries.
 *
 * An idempotent producer numbers its batches, and the broker drops a number that it has already seen. After a failed
 * request kafkajs takes a number back, although the broker may have written the batch and only its answer was lost.
 * The next batch would get the same number. The broker would take it for a repetition, drop it and confirm it. So
 * after a failure the producer is discarded, and a new one with its own numbers continues.
 */
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import { createKafka, type KafkaSettings, requestRetry } from './client.ts'
import { createPartitioner } from './partition.ts'
import { type Compression, compressionType } from './repairs/codecs.ts'

export interface OutgoingMessage {
  /** The topic's name in the cluster. */
  topic: string
  message: Kafkajs.Message
}

export interface Producer {
  /** Sends in order. Resolves when everything is acknowledged. If it rejects, a first part may have been written. */
  send(messages: readonly OutgoingMessage[]): Promise<void>
  /** Waits for what is being sent. */
  close(): Promise<void>
}

export interface ProducerOptions {
  compression: Compression
  logger: Logger
}

// A request becomes one record batch per partition. A broker refuses batches above 1 MiB by default.
const requestBytesMax = 700_000
const requestMessagesMax = 2_000
const messageBytesExtra = 64
// More than on the wire, so that a request of small headers does not have more of them than a reader takes.
const headerBytesExtra = 16

/** Connects a producer. Throws if the cluster cannot be reached. */
export async function openProducer(
  settings: KafkaSettings,
  { compression, logger }: ProducerOptions,
): Promise<Producer> {
  const kafka = createKafka(settings, logger)
  const type = compressionType(compression)
  let present: Kafkajs.Producer | undefined = await connect()
  let last: Promise<unknown> = Promise.resolve()

  async function connect(): Promise<Kafkajs.Producer> {
    const producer = kafka.producer({
      idempotent: true,
      allowAutoTopicCreation: false,
      createPartitioner,
      retry: requestRetry(settings),
    })
    try {
      await producer.connect()
      return producer
    } catch (cause) {
      await disconnect(producer)
      throw cause
    }
  }

  async function sendOne(topicMessages: Kafkajs.TopicMessages[]): Promise<void> {
    present ??= await connect()
    const producer = present
    try {
      await producer.sendBatch({ acks: -1, compression: type, topicMessages })
    } catch (cause) {
      present = undefined
      await disconnect(producer)
      throw cause
    }
  }

  async function sendAll(messages: readonly OutgoingMessage[]): Promise<void> {
    for (const request of requestsOf(messages)) await sendOne(request)
  }

  return {
    send(messages) {
      const done = last.then(() => sendAll(messages))
      last = done.catch(() => undefined)
      return done
    },
    async close() {
      await last
      if (present) await disconnect(present)
      present = undefined
    },
  }
}

/** Messages by topic, in requests that a broker accepts. A message that is too large gets its own request. */
export function* requestsOf(messages: readonly OutgoingMessage[]): Generator<Kafkajs.TopicMessages[]> {
  let request = new Map<string, Kafkajs.Message[]>()
  let bytes = 0
  let count = 0
  for (const { topic, message } of messages) {
    const messageBytes = bytesOf(message)
    if (count > 0 && (bytes + messageBytes > requestBytesMax || count === requestMessagesMax)) {
      yield topicMessages(request)
      request = new Map()
      bytes = 0
      count = 0
    }
    const ofTopic = request.get(topic)
    if (ofTopic) ofTopic.push(message)
    else request.set(topic, [message])
    bytes += messageBytes
    count++
  }
  if (count > 0) yield topicMessages(request)
}

function topicMessages(request: ReadonlyMap<string, Kafkajs.Message[]>): Kafkajs.TopicMessages[] {
  return [...request].map(([topic, messages]) => ({ topic, messages }))
}

function bytesOf({ key, value, headers = {} }: Kafkajs.Message): number {
  let bytes = messageBytesExtra + lengthOf(key) + lengthOf(value)
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values].flat()) bytes += headerBytesExtra + lengthOf(name) + lengthOf(value)
  }
  return bytes
}

function lengthOf(part: Buffer | string | null | undefined): number {
  return part == null ? 0 : Buffer.byteLength(part)
}

/** A discarded producer has nothing to lose, so a failed disconnect does not matter. */
async function disconnect(producer: Kafkajs.Producer): Promise<void> {
  await producer.disconnect().catch(() => undefined)
}
