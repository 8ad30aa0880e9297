/** Rebuilds on Kafka and a ClickHouse server: what a command has to open for them, and what it holds them to. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { type Config, ConfigError } from '../shared/config.ts'
import {
  databasesOf,
  readerSettings,
  registryOf,
  required,
  serverSettings,
  stateEncoderOf,
} from '../shared/distributed.ts'
import type { History } from '../shared/event-log/history.ts'
import { openKafkaHistory } from '../shared/event-log/kafka/history.ts'
import { createLogger } from '../shared/logger.ts'
import { openServerTables } from '../shared/tables/clickhouse-server.ts'
import { holdTablesIdentity } from '../shared/tables/identity.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { createRebuildDesk, type LocalDesk, type Watch } from './desk.ts'
import { runRebuild } from './rebuild.ts'
import type { RebuildRequest } from './rebuild-log.ts'

// The reader waits while everything is folded.
const callerMsMax = 86_400_000

/**
 * Runs the work with a desk, and closes what it needed. Kafka is asked for only by what needs it.
 * Throws `ConfigError`, or that the tables are not migrated.
 */
export async function withDistributedRebuilds<T>(
  config: Config,
  { logger }: { logger: Logger },
  work: (desk: LocalDesk) => Promise<T>,
): Promise<T> {
  required(config, ['PLEDGEVIEW_KAFKA_BROKERS', 'PLEDGEVIEW_CLICKHOUSE_URL'])
  refuseCluster(config)
  const databases = databasesOf(config)
  const tables = openServerTables(serverSettings(config))
  try {
    await checkMigrated(tables, databases)
    const withHistory = <R>(read: (history: History) => Promise<R>) => withKafkaHistory(config, read)
    const run = (request: RebuildRequest, watch: Watch) =>
      withHistory(history =>
        runDistributed({ config, tables, databases, history, logger, ...watch }, request),
      )
    return await work(createRebuildDesk({ tables, databases, isAlone: false, withHistory, run }))
  } finally {
    await tables.close()
  }
}

interface RunDependencies extends Watch {
  config: Config
  tables: Tables
  databases: Databases
  history: History
  logger: Logger
}

async function runDistributed(
  { signal, ...dependencies }: RunDependencies,
  request: RebuildRequest,
): Promise<void> {
  const { config, tables, databases } = dependencies
  const { PLEDGEVIEW_BACKER_KEY: backerKey } = required(config, ['PLEDGEVIEW_BACKER_KEY'])
  // Under another key every backer would be somebody else.
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_BACKER_KEY: backerKey,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  await runRebuild(
    {
      ...dependencies,
      backerKey,
      schemaRegistry: registryOf(config),
      ...(request.files.length > 0 && { encode: await stateEncoderOf(config) }),
      run: `rebuild-${randomUUID()}`,
      isAlone: false,
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: Math.random,
    },
    request,
    signal,
  )
}

async function withKafkaHistory<T>(config: Config, work: (history: History) => Promise<T>): Promise<T> {
  const settings = { ...readerSettings(config), callerMsMax }
  const history = await openKafkaHistory(settings, { logger: createLogger('error') })
  try {
    return await work(history)
  } finally {
    await history.close()
  }
}

function refuseCluster({ PLEDGEVIEW_CLICKHOUSE_CLUSTER: cluster }: Config): void {
  if (cluster === undefined) return
  throw new ConfigError(
    `PLEDGEVIEW_CLICKHOUSE_CLUSTER is set (${cluster}): a cluster cannot be rebuilt in place yet. Replay the log into ` +
      'another one, with projectors of a group of their own, and turn the query processes to it.',
  )
}

async function checkMigrated(tables: Tables, { model }: Databases): Promise<void> {
  const [found] = await tables.rows<{ logs: number }>({
    query: `SELECT count() AS logs FROM system.tables WHERE database = {model:String} AND name = 'rebuild_log'`,
    query_params: { model },
  })
  if (found?.logs === 1) return
  throw new Error(`the tables in ${model} are not up to date: run pledgeview migrate first`)
}
