/** Runs the projector as a separate process, on Kafka and a ClickHouse server. Any number of them share the work. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../shared/config.ts'
import {
  databasesOf,
  definitionsOf,
  readerSettings,
  registryOf,
  required,
  serverSettings,
  shardsOf,
} from '../shared/distributed.ts'
import { isOutage } from '../shared/event-log/kafka/client.ts'
import { openKafkaInspector } from '../shared/event-log/kafka/inspector.ts'
import type { FindBehind } from '../shared/event-log/kafka/offsets.ts'
import { openKafkaReader } from '../shared/event-log/kafka/reader.ts'
import { lagCheck, loopCheck, projectorCheck, sharedAnswered, tablesCheck } from '../shared/ops/checks.ts'
import { closeServer } from '../shared/ops/close-server.ts'
import { createMetrics, type Metrics } from '../shared/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../shared/ops/ops-server.ts'
import { retry } from '../shared/retry.ts'
import { checkParts, partsCheck } from '../shared/tables/broken-parts.ts'
import { openTables } from '../shared/tables/clickhouse.ts'
import {
  heldBackerHash,
  holdCommitHorizon,
  holdTablesId,
  holdTablesIdentity,
} from '../shared/tables/identity.ts'
import {
  type Databases,
  type Shard,
  type Statement,
  type Tables,
  TablesError,
} from '../shared/tables/port.ts'
import { type Compaction, checkAbsence } from './absence.ts'
import type { RebuildUnderWay } from './gauges.ts'
import { backerHasher } from './ingest/backer-hash.ts'
import { holdCluster } from './kafka-cluster.ts'
import { describeBehind, findBehindIn, noteBeginning } from './recorded-positions.ts'
import { createProjectorService } from './service.ts'
import { statusOf } from './status.ts'

export interface ProcessDependencies {
  config: Config
  logger: Logger
  /** Ends the process cleanly. */
  signal: AbortSignal
  /** Runs whenever this process takes the fold of a shard over: a rebuild may have died in the middle of the swap. */
  afterExpiredPause: (shard: Shard, place: { isShard: boolean }) => Promise<void>
  /** The rebuild that is under way, for the metrics. Default: none ever is. */
  rebuild?: (tables: Tables, databases: Databases) => Promise<RebuildUnderWay | undefined>
  onReady: (urls: { opsUrl: string }) => void
}

/** Runs until the signal aborts, then gives up its partitions. Throws if the projector cannot go on. */
export async function runProjectorProcess({
  config,
  logger,
  signal,
  afterExpiredPause,
  rebuild,
  onReady,
}: ProcessDependencies): Promise<void> {
  const { PLEDGEVIEW_BACKER_KEY: backerKey } = required(config, [
    'PLEDGEVIEW_KAFKA_BROKERS',
    'PLEDGEVIEW_CLICKHOUSE_URL',
    'PLEDGEVIEW_BACKER_KEY',
  ])
  const metrics = createMetrics()
  const databases = databasesOf(config)
  const tables = openTables(serverSettings(config))
  // A fold of a ledger without these rows would take their pledges out of the campaigns.
  await checkParts(tables, definitionsOf(config).databases)
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_BACKER_KEY: backerKey,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  // `migrate` did it, unless that was an earlier version.
  await holdTablesId(tables, databases, randomUUID())
  const settleMs = await holdCommitHorizon(tables, databases, config.PLEDGEVIEW_COMMIT_HORIZON_MS)
  const shards = await shardsOf(config)
  const run = `projector-${randomUUID()}`
  const findBehind = behindFinder({ config, tables, databases, logger, signal, run })
  const reader = await openKafkaReader(readerSettings(config), { logger, findBehind })
  const compaction = await compactionOf({
    config,
    tables,
    databases,
    logger,
    metrics,
    signal,
    run,
    findBehind,
  }).catch(async error => {
    await reader.close()
    await shards?.close()
    await tables.close()
    throw error
  })
  const projector = createProjectorService({
    reader,
    tables,
    databases,
    ...(shards && { shards: shards.shards }),
    config,
    hashBacker: backerHasher(backerKey, await heldBackerHash(tables, databases)),
    schemaRegistry: registryOf(config),
    run,
    presenceMs: presenceMsOf(compaction),
    // A fold of the worker before this one may run for half its horizon. After a whole horizon it has certainly ended.
    settleMs,
    afterExpiredPause: shard => afterExpiredPause(shard, { isShard: shards !== undefined }),
    ...(rebuild && { rebuild: () => rebuild(tables, databases) }),
    metrics,
    logger,
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
  })
  // While Kafka is away, `lag` tries again for longer than any probe waits.
  const lagAnswered = sharedAnswered(async () =>
    lagCheck(await projector.lag(), config.PLEDGEVIEW_LAG_RECORDS_MAX),
  )
  const ops = createOpsServer({
    hosts: opsHosts(config),
    health: () => ({ loop: loopCheck(projector.health()) }),
    readiness: async () => ({
      projector: projectorCheck(projector.health().failure),
      lag: await lagAnswered(),
      tables: await tablesCheck(tables),
      parts: await partsCheck(tables, definitionsOf(config).databases),
    }),
    status: () => statusOf({ projector, tables, databases, ...shards, warnings: compaction.warnings }),
    metrics,
    beforeScrape: async () => {
      // The leader reports them. This process may have led before.
      if (!reader.leads()) metrics.setAside.reset()
      await projector.beforeScrape()
    },
  })
  try {
    onReady({
      opsUrl: await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT }),
    })
    await projector.run(signal)
  } finally {
    await closeServer(ops)
    await reader.close()
    await shards?.close()
    await tables.close()
  }
}

/**
 * Compares the group's positions with the tables, and notes first with what these began (recorded-positions.ts). Waits for
 * ClickHouse as a batch would.
 */
function behindFinder({
  config,
  tables,
  databases,
  logger,
  signal,
  run,
}: Pick<ProcessDependencies, 'config' | 'logger' | 'signal'> & {
  tables: Tables
  databases: Databases
  run: string
}): FindBehind {
  const group = config.PLEDGEVIEW_KAFKA_GROUP
  const policy = {
    isRetryable: (error: unknown) => error instanceof TablesError && error.retryable,
    msMax: config.PLEDGEVIEW_RETRY_MS_MAX,
    pauseMsMin: 500,
  }
  // Each statement by itself, because the look may consist of many.
  const patient: Pick<Tables, 'rows' | 'insert'> = {
    rows: <Row>(statement: Statement) => retry(() => tables.rows<Row>(statement), policy, { signal }),
    insert: rows => retry(() => tables.insert(rows), policy, { signal }),
  }
  const find = findBehindIn(patient, databases, group)
  let isNoted = false
  return async (committed, all) => {
    if (!isNoted) await noteBeginning(patient, databases, run, { group, committed: all })
    isNoted = true
    const behind = await find(committed, all)
    for (const [place, at] of behind) logger.warn(describeBehind(place, committed.get(place) ?? 0, at))
    return behind
  }
}

// A note is a small row. A restart after a shorter absence than this needs no newer one.
const presenceMsMax = 3_600_000

/** Often enough for the topic that keeps its tombstones for the shortest time. */
function presenceMsOf({ topics }: Compaction): number {
  const retentionMs = Math.min(...topics.map(({ tombstoneRetentionMs }) => tombstoneRetentionMs))
  return Math.min(presenceMsMax, Math.max(1_000, retentionMs / 10))
}

/**
 * Checks that the group's positions are of this cluster, and the topics' settings against the time that the projectors were away,
 * and reports these. Throws `OtherCluster` or `AwayTooLong`.
 */
async function compactionOf({
  config,
  tables,
  databases,
  logger,
  metrics,
  signal,
  run,
  findBehind,
}: Pick<ProcessDependencies, 'config' | 'logger' | 'signal'> & {
  tables: Tables
  databases: Databases
  run: string
  metrics: Metrics
  findBehind: FindBehind
}): Promise<Compaction> {
  // What is read again because the tables are older counts as not read.
  const inspector = await openKafkaInspector(readerSettings(config), { logger, findBehind })
  try {
    const retentionMsMin = config.PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS
    const group = config.PLEDGEVIEW_KAFKA_GROUP
    const compaction = await retry(
      async () => {
        // The positions are read before the notes: a run notes the cluster before it commits any.
        await holdCluster(tables, databases, run, { ...(await inspector.place()), group })
        return checkAbsence(inspector, { tables, databases, retentionMsMin })
      },
      {
        isRetryable: error => isOutage(error) || (error instanceof TablesError && error.retryable),
        msMax: config.PLEDGEVIEW_RETRY_MS_MAX,
        pauseMsMin: 500,
      },
      { signal },
    )
    for (const warning of compaction.warnings) logger.warn(warning)
    for (const { topic, tombstoneRetentionMs } of compaction.topics) {
      metrics.tombstoneRetention.set({ topic }, tombstoneRetentionMs / 1000)
    }
    return compaction
  } finally {
    await inspector.close()
  }
}
