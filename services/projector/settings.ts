/** What the loops of a projector take from the configuration. */
import type { Config } from '../runtime/config.ts'
import { collectMsOf } from './projector.ts'

/** How long the ingest loop waits for records, and the fold loop for batches of other processes, ms. */
export const idleMsMax = 500

// Room for a busy machine, and for the last request of a step.
const stillMarginMs = 30_000

/** Longer than any step of the ingest loop may take: to collect a batch, to write its rows or its positions, and to commit its offsets. */
export function stillMsMaxOf(config: Config): number {
  // A statement is tried again within the first bound, and may then be silent for the second, twice: a read is sent again.
  const statementMs = config.PLEDGEVIEW_RETRY_MS_MAX + 2 * config.PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX
  const collectMs = collectMsOf(projectorSettings(config), { isBacklog: true, sinceLastMs: 0 })
  return Math.max(statementMs, config.PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX, collectMs) + stillMarginMs
}

export type ProjectorSettings = ReturnType<typeof projectorSettings>

/** The limits of the ingest loop. */
export function projectorSettings(config: Config) {
  return {
    batchRecordsMax: config.PLEDGEVIEW_BATCH_RECORDS_MAX,
    batchBytesMax: config.PLEDGEVIEW_BATCH_BYTES_MAX,
    /** How long a batch collects after its first record. At a steady rate, a batch ends this long after the one before. */
    batchMsMax: config.PLEDGEVIEW_BATCH_MS_MAX,
    /** How long it collects after its first record if the batch before ended long ago: records of one moment share a batch. */
    batchMsMin: 25,
    /** How long one poll waits for records. An idle loop makes one turn in this time. */
    idleMsMax,
    /** How long a batch, or a request to the schema registry, is retried before the projector gives up. */
    retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX,
  }
}
