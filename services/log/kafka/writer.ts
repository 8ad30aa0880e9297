/**
 * Appends to the event log on Kafka: idempotent, acknowledged by all replicas in sync, with bounded retries.
 *
 * An idempotent producer numbers its batches, and the broker drops a number that it has already seen. After a failed
 * request kafkajs takes a number back, although the broker may have written the batch and only its answer was lost.
 * The next batch would get the same number. The broker would take it for a repetition, drop it and confirm it. So
 * after a failure the producer is discarded, and a new one with its own numbers continues.
 */
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import { toBuffer } from '../../runtime/to-buffer.ts'
import { bytesOf, type EventWriter, type NewRecord } from '../port.ts'
import { createKafka, type KafkaSettings, requestRetry, topicName } from './client.ts'
import { createPartitioner, writeHeaders } from './record.ts'
import { type Compression, compressionType } from './repairs/codecs.ts'

export interface KafkaWriterSettings extends KafkaSettings {
  /** Default: LZ4. */
  compression?: Compression
}

// A request becomes one record batch per partition. A broker refuses batches above 1 MiB by default.
const requestBytesMax = 700_000
const requestRecordsMax = 2_000
const recordBytesExtra = 64
// More than on the wire, so that a request of small headers does not have more of them than a reader takes.
const headerBytesExtra = 16

/**
 * Connects a writer to existing topics. Throws if the cluster cannot be reached.
 *
 * `append` keeps the order of the calls. If it rejects, a first part of the records may be in the log. The writer can
 * still be used: records that are appended again change nothing but the log's length.
 */
export async function openKafkaWriter(
  settings: KafkaWriterSettings,
  { logger }: { logger: Logger },
): Promise<EventWriter> {
  const kafka = createKafka(settings, logger)
  const compression = compressionType(settings.compression ?? 'lz4')
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

  async function send(records: readonly NewRecord[]): Promise<void> {
    present ??= await connect()
    const producer = present
    try {
      await producer.sendBatch({ acks: -1, compression, topicMessages: messagesOf(settings, records) })
    } catch (cause) {
      present = undefined
      await disconnect(producer)
      throw cause
    }
  }

  return {
    append(records) {
      const done = last.then(async () => {
        for (const request of requestsOf(records)) await send(request)
      })
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

/** The records in requests that a broker accepts. A record that is too large gets its own request. */
export function* requestsOf(records: readonly NewRecord[]): Generator<NewRecord[]> {
  let request: NewRecord[] = []
  let bytes = 0
  for (const record of records) {
    const recordBytes = wireBytesOf(record)
    if (
      request.length > 0 &&
      (bytes + recordBytes > requestBytesMax || request.length === requestRecordsMax)
    ) {
      yield request
      request = []
      bytes = 0
    }
    request.push(record)
    bytes += recordBytes
  }
  if (request.length > 0) yield request
}

/** About, and never less than on the wire. */
function wireBytesOf(record: NewRecord): number {
  let bytes = recordBytesExtra + bytesOf(record)
  for (const [name] of record.headers ?? []) bytes += headerBytesExtra + Buffer.byteLength(name)
  return bytes
}

function messagesOf(settings: KafkaSettings, records: readonly NewRecord[]): Kafkajs.TopicMessages[] {
  return [...Map.groupBy(records, ({ topic }) => topic)].map(([topic, ofTopic]) => ({
    topic: topicName(settings, topic),
    messages: ofTopic.map(record => ({
      key: record.key && toBuffer(record.key),
      value: record.value && toBuffer(record.value),
      ...(record.headers && { headers: writeHeaders(record.headers) }),
    })),
  }))
}

/** A discarded producer has nothing to lose, so a failed disconnect does not matter. */
async function disconnect(producer: Kafkajs.Producer): Promise<void> {
  await producer.disconnect().catch(() => undefined)
}
