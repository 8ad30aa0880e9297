/**
 * The projector as a service: the ingest loop and the fold beside it, wired to a log and to tables.
 *
 * The same assembly runs on Kafka and on the journal. It ends when its signal aborts, or by throwing when one of the
 * two loops cannot go on; then both have ended.
 */
import type { Logger } from 'pino'
import { currencyDigits } from '../../contracts/events/currencies.ts'
import type { Config } from '../shared/config.ts'
import type { EventReader, PartitionLag } from '../shared/event-log/port.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { SchemaRegistry } from '../shared/schema-registry.ts'
import { SchemaRegistryError } from '../shared/schema-registry-answers.ts'
import type { Databases, Shard, Tables } from '../shared/tables/port.ts'
import type { Batch } from './batch.ts'
import { createDecoder } from './decode.ts'
import type { FoldReport } from './folder.ts'
import { createFolding, untilFirstFails } from './folding.ts'
import { backerHasher } from './ledger-rows.ts'
import { type ProjectorSettings, runProjector } from './projector.ts'
import { createRejectGate } from './reject-gate.ts'
import { sleep } from './sleep.ts'

export interface ProjectorServiceDependencies {
  reader: EventReader
  tables: Tables
  databases: Databases
  /** Where the folders work, on a cluster: one for each shard. Default: on the tables themselves. */
  shards?: readonly Shard[]
  config: Config
  /** Tells what schema ids stand for; without it they are the fixed ones. */
  schemaRegistry?: SchemaRegistry | undefined
  /** 64 hex digits: the key of the backer hashes. */
  backerKey: string
  /** Names this run of this process; unique. */
  run: string
  /** How long statements of a folder before this one may still run, ms. */
  settleMs: number
  /** As `takeEpoch` has them. */
  respectsHold?: (holder: string) => boolean
  afterHold?: () => Promise<void>
  metrics: Metrics
  logger: Logger
  /** Unix ms, for metrics, and to tell a backlog. */
  now: () => number
  monotonicMs: () => number
  random: () => number
}

export interface ProjectorHealth {
  /** Ms since the ingest loop turned last. */
  turnedMsAgo: number
  /** Why the projector stopped, where it did. */
  failure: string | undefined
  /** Records that were committed by this run. */
  records: number
  rejects: number
}

export interface ProjectorService {
  run(signal: AbortSignal): Promise<void>
  health(): ProjectorHealth
  lag(): Promise<PartitionLag[]>
  /** Whether everything that is in the log is folded. */
  isDrained(): Promise<boolean>
}

// The loop waits this long for records, and the folder for batches of other processes.
const idleMsMax = 500
// A burst of bad records is one line each up to here; all of them are in the rejects and in the metrics.
const loggedRejectsMax = 10

export function createProjectorService(dependencies: ProjectorServiceDependencies): ProjectorService {
  const { reader, tables, databases, config, logger, metrics, monotonicMs, random, run, schemaRegistry } =
    dependencies
  let turnedAt = monotonicMs()
  let failure: string | undefined
  let records = 0
  let rejects = 0

  const folding = createFolding({
    shards: dependencies.shards ?? [{ tables, databases }],
    holder: run,
    settings: {
      horizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
      settleMs: dependencies.settleMs,
      platformDigits: currencyDigits(config.PLEDGEVIEW_PLATFORM_CURRENCY) ?? 2,
      campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
    },
    leads: () => reader.leads(),
    idleMsMax,
    retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX,
    onFold,
    onRetry: error => onRetry('fold', error),
    onSuperseded: error =>
      logger.warn(
        { error: error.message },
        'another projector folds these tables; where it stays so, two consumer groups project into them',
      ),
    ...(dependencies.respectsHold && { respectsHold: dependencies.respectsHold }),
    ...(dependencies.afterHold && { afterHold: dependencies.afterHold }),
    onTakeOver: () => logger.info({ holder: run }, 'this process folds'),
    monotonicMs,
    now: dependencies.now,
    random,
  })

  function onBatch(batch: Batch, { writeMs }: { writeMs: number }): void {
    records += batch.records
    rejects += batch.rejects.length
    for (const [topic, accepted] of Object.entries(batch.eventsByTopic)) {
      if (accepted > 0) metrics.events.inc({ topic, outcome: 'accepted' }, accepted)
    }
    for (const { record } of batch.rejects) metrics.events.inc({ topic: record.topic, outcome: 'rejected' })
    for (const { record, reason } of batch.rejects.slice(0, loggedRejectsMax)) {
      const { topic, partition, offset } = record
      logger.warn(
        { topic, partition, offset, reason, ofBatch: batch.rejects.length },
        'a record was rejected',
      )
    }
    metrics.batchRecords.observe(batch.records)
    metrics.batchSeconds.observe(writeMs / 1000)
    logger.debug({ records: batch.records, rejects: batch.rejects.length, writeMs }, 'batch')
    folding.noteBatch({ hasKeys: batch.eventsByTopic['api-keys'] > 0 })
  }

  function onFold(report: FoldReport): void {
    metrics.foldSeconds.observe(report.elapsedMs / 1000)
    metrics.foldCampaigns.observe(report.campaigns)
    metrics.freshnessSeconds.observe(Math.max(0, dependencies.now() - report.oldestAt) / 1000)
    logger.debug(report, 'fold')
  }

  function onRetry(stage: 'schemas' | 'ingest' | 'fold', error: Error): void {
    metrics.retries.inc({ stage })
    const failed = stage === 'schemas' ? 'the schema registry did not tell' : 'ClickHouse did not take it'
    logger.warn({ stage, error: error.message }, `${failed}; trying again`)
  }

  function ingest(signal: AbortSignal): Promise<void> {
    return runProjector(
      {
        reader,
        tables,
        databases,
        decode: createDecoder(schemaRegistry?.known),
        schemaRegistry,
        hashBacker: backerHasher(dependencies.backerKey),
        gate: createRejectGate({
          shareMax: config.PLEDGEVIEW_REJECT_SHARE_MAX,
          windowRecords: config.PLEDGEVIEW_REJECT_WINDOW_RECORDS,
          rejectsMin: config.PLEDGEVIEW_REJECTS_MIN,
        }),
        projector: run,
        settings: projectorSettings(config),
        events: {
          onBatch,
          onRetry: error => {
            // A loop that waits for another service moves; to end the process would not bring that service back.
            turnedAt = monotonicMs()
            onRetry(error instanceof SchemaRegistryError ? 'schemas' : 'ingest', error)
          },
          onTurn: () => {
            turnedAt = monotonicMs()
          },
        },
        monotonicMs,
        sleep,
        random,
      },
      signal,
    )
  }

  return {
    async run(signal) {
      try {
        await untilFirstFails([ingest, folding.run], signal)
      } catch (error) {
        failure = error instanceof Error ? error.message : String(error)
        throw error
      }
    },
    health: () => ({ turnedMsAgo: monotonicMs() - turnedAt, failure, records, rejects }),
    lag: () => reader.lag(),
    async isDrained() {
      const lag = await reader.lag()
      return lag.every(({ committed, end }) => committed >= end) && folding.isDone()
    },
  }
}

/** How the ingest loop is bounded. */
export function projectorSettings(config: Config): ProjectorSettings {
  return {
    batchRecordsMax: config.PLEDGEVIEW_BATCH_RECORDS_MAX,
    batchBytesMax: config.PLEDGEVIEW_BATCH_BYTES_MAX,
    batchMsMax: config.PLEDGEVIEW_BATCH_MS_MAX,
    idleMsMax,
    retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX,
  }
}
