/** Takes over stamps on ClickHouse servers: opens both sides, and refuses what cannot work before anything is changed. */
import { randomUUID } from 'node:crypto'
import type { Config } from '../shared/config.ts'
import { databasesOf, definitionsOf, required, serverSettings, shardsOf } from '../shared/distributed.ts'
import { messageOf } from '../shared/message-of.ts'
import { sleep } from '../shared/sleep.ts'
import { openTables } from '../shared/tables/clickhouse.ts'
import { checkMigrated } from '../shared/tables/migrate.ts'
import { type Databases, type Shard, type Tables, TablesError } from '../shared/tables/port.ts'
import { distributedDatabases } from '../shared/tables/replicated.ts'
import { checkShards } from '../shared/tables/shards.ts'
import { hasReplicas, type RebuildTables } from './cluster.ts'
import { clusterOf } from './distributed.ts'
import { releaseStamps, StampsRefused, type TakenStamps, takeStamps } from './take-stamps.ts'

export interface StampsRequest {
  /** The addresses of the other tables: of one server, or of each shard. */
  fromUrls: readonly string[]
  acceptsLoss: boolean
}

/** Throws `StampsRefused`, `ConfigError`, or an error that names the other server if it is one of those. */
export function takeStampsDistributed(
  config: Config,
  { fromUrls, acceptsLoss }: StampsRequest,
): Promise<TakenStamps> {
  return withOwnTables(config, async (own, onClose) => {
    const { databases } = definitionsOf(config)
    const from: Shard[] = []
    for (const url of fromUrls) {
      const tables = nameServer(openTables({ ...serverSettings(config), url }), url)
      onClose(tables)
      await checkMigrated(tables, databases).catch((error: unknown) => {
        throw new Error(`the other tables at ${hostOf(url)}: ${messageOf(error)}`, { cause: error })
      })
      from.push({ tables, databases })
    }
    await checkAll(from)
    return takeStamps({
      ...own,
      from,
      config,
      acceptsLoss,
      run: `stamps-${randomUUID()}`,
      monotonicMs: () => performance.now(),
      sleep,
      random: Math.random,
    })
  })
}

/** Lets projectors fold the tables of these settings again. Resolves with whether that was stopped. */
export function releaseStampsDistributed(config: Config): Promise<boolean> {
  return withOwnTables(config, own => releaseStamps(own, `release-${randomUUID()}`))
}

/** Opens the tables of the settings, and closes what was opened. `onClose`: something else to close. */
async function withOwnTables<T>(
  config: Config,
  work: (own: RebuildTables, onClose: (opened: { close(): Promise<void> }) => void) => Promise<T>,
): Promise<T> {
  required(config, ['PLEDGEVIEW_CLICKHOUSE_URL'])
  const opened: { close(): Promise<void> }[] = []
  try {
    const tables = openTables(serverSettings(config))
    opened.push(tables)
    const databases = databasesOf(config)
    const shards = await shardsOf(config)
    if (shards) opened.push(shards)
    for (const shard of shards?.shards ?? [{ tables, databases }]) {
      await checkMigrated(shard.tables, shard.databases)
    }
    const cluster = await clusterOf(config, shards)
    if (cluster && (await hasReplicas({ tables }, cluster.name))) throw replicasRefused(cluster.name)
    return await work({ tables, databases, cluster }, other => opened.push(other))
  } finally {
    for (const one of opened.reverse()) await one.close()
  }
}

/** Checks that these are all of the other tables, once each. */
async function checkAll(from: readonly Shard[]): Promise<void> {
  const [first] = from
  if (!first) throw new StampsRefused('no address of the other tables was given')
  const cluster = await clusterAt(first.tables, distributedDatabases(first.databases))
  if (cluster === undefined) {
    if (from.length === 1) return
    throw new StampsRefused('the other tables are on one server: give one address')
  }
  const shards = { shards: from, close: async () => {} }
  await checkShards(shards, cluster).catch((error: unknown) => {
    throw new StampsRefused(`the other tables: ${messageOf(error)}: give the address of each shard`, {
      cause: error,
    })
  })
  if (await hasReplicas({ tables: first.tables }, cluster)) throw replicasRefused(cluster)
}

/** The name of the cluster over which that server's tables are spread; `undefined`: they are on that server alone. */
async function clusterAt(tables: Tables, { model }: Databases): Promise<string | undefined> {
  const [found] = await tables.rows<{ cluster: string }>({
    query: `SELECT extract(engine_full, '^Distributed\\\\(\\'([^\\']+)\\'') AS cluster FROM system.tables
            WHERE database = {model:String} AND name = 'campaigns'`,
    query_params: { model },
  })
  return found?.cluster
}

function replicasRefused(cluster: string): StampsRefused {
  return new StampsRefused(
    `a shard of ${cluster} has several replicas, and stamps can be taken over between shards with one replica each only`,
  )
}

/** Errors say that they come from the other side, and from which server. */
function nameServer(tables: Tables, url: string): Tables {
  const named = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      if (!(error instanceof TablesError)) throw error
      const { retryable, type, message } = error
      throw new TablesError(`the other tables at ${hostOf(url)}: ${message}`, {
        retryable,
        type,
        cause: error,
      })
    }
  }
  return {
    rows: (statement, options) => named(tables.rows(statement, options)),
    run: (statement, options) => named(tables.run(statement, options)),
    insert: (insert, options) => named(tables.insert(insert, options)),
    close: () => tables.close(),
  }
}

/** Without user and password. */
function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'an address that is no URL'
}
