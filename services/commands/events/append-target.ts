/** The log that `events append` writes to: the journal of a data directory, or Kafka. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { encodeState, type StateEncoder } from '../../../contracts/events/codec.ts'
import { kafkaSettings, stateEncoderOf } from '../../distributed/settings.ts'
import { openKafkaWriter } from '../../log/kafka/writer.ts'
import { openJournalWriter } from '../../log/local/journal.ts'
import type { EventWriter } from '../../log/port.ts'
import type { Config } from '../../runtime/config.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { createLogger } from '../../runtime/ops/logger.ts'

/** An event log that is open for appending, and the encoder for its values. */
export interface AppendTarget {
  writer: EventWriter
  encode: StateEncoder
  /** Whether a failed append may have left a first part of its records in the log. */
  isPartial: boolean
}

/** Appends to the journal of a data directory, which is made if it is missing. */
export async function openJournalTarget(directory: string): Promise<AppendTarget> {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new Error(`cannot make the data directory ${directory}: ${messageOf(cause)}`, { cause })
  }
  return {
    writer: await openJournalWriter(join(directory, 'journal.sqlite')),
    encode: encodeState,
    isPartial: false,
  }
}

/** Appends to Kafka, under the ids of the registry if one is configured. */
export async function openKafkaTarget(config: Config): Promise<AppendTarget> {
  const encode = await stateEncoderOf(config)
  const writer = await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') })
  return { encode, writer, isPartial: true }
}
