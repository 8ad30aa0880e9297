/** Appends to the event log on Kafka. What the producer confirmed is in the log, on all replicas in sync. */
import type { Logger } from 'pino'
import type { EventWriter, NewRecord } from '../port.ts'
import { type KafkaSettings, toBuffer, topicName } from './client.ts'
import { type OutgoingMessage, openProducer } from './producer.ts'
import { writeHeaders } from './record.ts'
import type { Compression } from './repairs/codecs.ts'

export interface KafkaWriterSettings extends KafkaSettings {
  /** Default: LZ4. */
  compression?: Compression
}

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
  const { compression = 'lz4' } = settings
  const producer = await openProducer(settings, { compression, logger })
  return {
    append: records => producer.send(records.map(record => outgoing(settings, record))),
    close: () => producer.close(),
  }
}

function outgoing(settings: KafkaSettings, record: NewRecord): OutgoingMessage {
  const { topic, key, value, headers } = record
  return {
    topic: topicName(settings, topic),
    message: {
      key: key && toBuffer(key),
      value: value && toBuffer(value),
      ...(headers && { headers: writeHeaders(record) }),
    },
  }
}
