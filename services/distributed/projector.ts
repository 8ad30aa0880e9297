/** Runs the projector as a separate process, on Kafka and a ClickHouse server. Any number of them share the work. */
import { randomUUID } from 'node:crypto'
import { openLiveProjector } from '../generations/live-projector.ts'
import { isOutage, whileAway } from '../log/kafka/client.ts'
import { openKafkaInspector } from '../log/kafka/inspector.ts'
import { openKafkaReader } from '../log/kafka/reader.ts'
import { type Compaction, checkAbsence } from '../projector/positions/last-read.ts'
import { readPositions, readUntilOfNew, type StoredPositions } from '../projector/positions/positions.ts'
import { statusOf } from '../projector/status.ts'
import { closeServer, closing, type Open } from '../runtime/async/closing.ts'
import { retry } from '../runtime/async/retry.ts'
import { messageOf } from '../runtime/message-of.ts'
import { lagCheck, loopCheck, projectorCheck, sharedAnswered, tablesCheck } from '../runtime/ops/checks.ts'
import { createMetrics, type Metrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import { checkParts, partsCheck } from '../tables/broken-parts.ts'
import { openTables } from '../tables/clickhouse/clickhouse.ts'
import type { FollowedDatabases } from '../tables/generation-log.ts'
import type { Shard, Tables } from '../tables/port.ts'
import { noteStop } from '../tables/projector-stops.ts'
import { checkMigrated } from '../tables/schema/migrate.ts'
import type { Process } from './serve.ts'
import {
  clusterOf,
  databasesOf,
  hashBackerOf,
  patientAtStart,
  readerSettings,
  registryOf,
  required,
  serverSettings,
} from './settings.ts'

/** Runs until the signal aborts, then gives up its partitions. Throws if the projector cannot go on, and leaves the reason in the tables. */
export async function runProjectorProcess(given: Process): Promise<void> {
  const { config, logger, signal } = given
  required(config, ['PLEDGEVIEW_KAFKA_BROKERS', 'PLEDGEVIEW_CLICKHOUSE_URL', 'PLEDGEVIEW_BACKER_KEY'])
  const run = `projector-${randomUUID()}`
  await closing(async open => {
    const tables = open(openTables(serverSettings(config)))
    const databases = databasesOf(config)
    await databases.follow(patientAtStart(tables, given))
    try {
      await project(given, { tables, databases, run, open })
    } catch (cause) {
      const isOfKafka = !signal.aborted && isOutage(cause)
      // The message of kafkajs names only a port.
      const error = isOfKafka ? new Error(`Kafka does not answer: ${messageOf(cause)}`, { cause }) : cause
      if (!signal.aborted) await noteStop(tables, databases, run, error, logger)
      throw error
    }
  })
}

interface Place {
  tables: Tables
  databases: FollowedDatabases
  run: string
  open: Open
}

async function project(given: Process, { tables, databases, run, open }: Place): Promise<void> {
  const { config, logger, signal, say } = given
  const metrics = createMetrics()
  const hashBacker = await hashBackerOf(config, patientAtStart(tables, given), databases)
  const cluster = open(await clusterOf(config, databases))
  const parts = cluster?.shards ?? [{ tables, databases }]
  const patient = parts.map(part => ({ ...part, tables: patientAtStart(part.tables, given) }))
  for (const part of patient) await checkMigrated(part.tables, part.databases)
  // A fold of a ledger without these rows would take their pledges out of the campaigns.
  await checkParts(
    patient.map(part => part.tables),
    databases.ofShard,
  )
  const compaction = await compactionOf(given, patient, metrics)
  const projector = await openLiveProjector({
    ...{ tables, databases, cluster, config, run, metrics, logger, signal, hashBacker },
    schemaRegistry: registryOf(config),
    lastReadMs: lastReadMsOf(compaction),
    openReader: async starts => open(await openKafkaReader(readerSettings(config), { logger, starts })),
  })
  // While Kafka is away, `lag` tries again for longer than any probe waits.
  const lagAnswered = sharedAnswered('the event log', async () =>
    lagCheck(await projector.lag(), config.PLEDGEVIEW_LAG_RECORDS_MAX),
  )
  const ops = createOpsServer({
    hosts: opsHosts(config),
    health: () => ({ loop: loopCheck(projector.health()) }),
    readiness: async () => ({
      projector: projectorCheck(projector.health().failure),
      lag: await lagAnswered(),
      tables: await tablesCheck(tables),
      parts: await partsCheck(
        parts.map(part => part.tables),
        databases.ofShard,
      ),
    }),
    status: () => statusOf({ projector, tables, databases, config, shards: parts, ...compaction }),
    metrics,
    beforeScrape: projector.beforeScrape,
  })
  open({ close: () => closeServer(ops) })
  const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT })
  say(`The projector runs (ops: ${opsUrl})`)
  await projector.run(signal)
}

// A note is a small row. A restart after a shorter absence than this needs no newer one.
const lastReadMsMax = 3_600_000

/** Often enough for the topic that keeps its tombstones for the shortest time. */
function lastReadMsOf({ topics }: Compaction): number {
  const retentionMs = Math.min(...topics.map(({ tombstoneRetentionMs }) => tombstoneRetentionMs))
  return Math.min(lastReadMsMax, Math.max(1_000, retentionMs / 10))
}

/**
 * Checks the topics' settings against the time that the projectors were away, and reports these. Throws if deletions may be lost.
 * It runs before the projector reads anything.
 */
async function compactionOf(
  { config, logger, signal }: Process,
  shards: readonly Shard[],
  metrics: Metrics,
): Promise<Compaction> {
  let stored: StoredPositions | undefined
  const positions = async (log: string) => {
    stored = await readPositions(shards, log)
    return stored.ofLog
  }
  const check = () =>
    closing(async open => {
      const inspector = open(await openKafkaInspector(readerSettings(config), { logger, positions }))
      return checkAbsence(inspector, {
        agoMs(place) {
          const now = Date.now()
          return now - (stored?.ofLog.get(place)?.readUntil ?? readUntilOfNew(stored, now))
        },
        retentionMsMin: config.PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS,
      })
    })
  const policy = whileAway(config.PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX)
  const compaction = await retry(check, policy, { signal })
  for (const warning of compaction.warnings) logger.warn(warning)
  for (const { topic, tombstoneRetentionMs } of compaction.topics) {
    metrics.tombstoneRetention.set({ topic }, tombstoneRetentionMs / 1000)
  }
  return compaction
}
