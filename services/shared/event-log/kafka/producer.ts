/**
 * A producer that may be trusted with records: idempotent, acknowledged by all replicas in sync, bounded retries.
 *
 * An idempotent producer numbers its batches, and the broker drops a number that it has seen. kafkajs takes a number
 * back when a request fails, though the broker may have written it and only its answer was lost; the next batch would
 * get that number, be taken for a repetition, and be dropped with a confirmation. So after a failure the producer is
 * given up, and another one, with numbers of its own, goes on.
 */
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import { createKafka, type KafkaSettings, requestRetry } from './client.ts'
import { type Compression, compressionType } from './codecs.ts'
import { loadKafkajs } from './library.ts'

export interface OutgoingMessage {
  /** The topic's name in the cluster. */
  topic: string
  message: Kafkajs.Message
}

export interface Producer {
  /** Sends in order; resolves once all is acknowledged. Where it rejects, a first part may have been written. */
  send(messages: readonly OutgoingMessage[]): Promise<void>
  /** Waits for what is being sent. */
  close(): Promise<void>
}

export interface ProducerOptions {
  compression: Compression
  createPartitioner: Kafkajs.ICustomPartitioner
  logger: Logger
}

// A request becomes one record batch a partition, which a broker refuses above 1 MiB by default.
const requestBytesMax = 700_000
const requestMessagesMax = 2_000
const messageBytesExtra = 64

/** Connects a producer. Throws where the cluster cannot be reached. */
export async function openProducer(
  settings: KafkaSettings,
  { compression, createPartitioner, logger }: ProducerOptions,
): Promise<Producer> {
  const kafka = createKafka(settings, logger)
  const type = compressionType(loadKafkajs(), compression)
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

/** Messages by topic, in requests that a broker takes; a message that is too large alone has a request alone. */
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
  const parts = [key, value, ...Object.keys(headers), ...Object.values(headers).flat()]
  return parts.reduce((sum, part) => sum + (part == null ? 0 : Buffer.byteLength(part)), messageBytesExtra)
}

/** A producer that is given up has nothing to lose: how its farewell fails does not matter. */
async function disconnect(producer: Kafkajs.Producer): Promise<void> {
  await producer.disconnect().catch(() => undefined)
}
