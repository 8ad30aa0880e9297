/** Where generations stand: on one server, or on the shards of a cluster. */
import { generationOf, readCurrent } from '../tables/generations.ts'
import type { Databases, Shard, Tables } from '../tables/port.ts'
import { areViewsOf, createGeneration, type MigrateOptions, pointViews } from '../tables/schema/migrate.ts'
import { distributedDatabases } from '../tables/schema/replicated.ts'
import { definerUser } from '../tables/schema/roles.ts'
import { onEveryShard } from '../tables/shards.ts'
import type { LogPlace } from './attempts.ts'

export interface RebuildCluster {
  /** In `remote_servers`. */
  name: string
  shards: readonly Shard[]
}

/** The tables that a rebuild works on. On a cluster `tables` and `databases` are those over all shards. */
export interface RebuildTables {
  tables: Tables
  databases: Databases
  cluster?: RebuildCluster | undefined
}

/** The servers, each with the databases of a generation as it has them. */
export function serversOf(
  { tables, databases, cluster }: RebuildTables,
  generation: number,
): readonly Shard[] {
  const servers = cluster?.shards ?? [{ tables, databases }]
  return servers.map(server => ({ ...server, databases: generationOf(server.databases, generation) }))
}

/** The databases of a generation, over all shards. */
export function wholeOf(place: RebuildTables, generation: number): Databases {
  const [server] = serversOf(place, generation)
  if (!server) throw new Error('the cluster has no shards')
  return place.cluster ? distributedDatabases(server.databases) : server.databases
}

/** The server with the generation log: the first shard of the cluster, whatever the order of the URLs is. */
export async function logPlaceOf({ tables, databases, cluster }: RebuildTables): Promise<LogPlace> {
  if (!cluster) return { tables, base: databases.base }
  for (const shard of cluster.shards) {
    const found = await shard.tables.rows({
      query: 'SELECT 1 FROM system.clusters WHERE cluster = {name:String} AND shard_num = 1 AND is_local',
      query_params: { name: cluster.name },
    })
    if (found.length > 0) return { tables: shard.tables, base: shard.databases.base }
  }
  throw new Error(`no URL leads to the first shard of ${cluster.name}`)
}

/** Makes the databases of a generation, or what is missing of them. */
export async function makeGeneration(place: RebuildTables, generation: number): Promise<void> {
  const { tables, databases, options } = await definitionOf(place, generation)
  await createGeneration(tables, databases, options)
}

const pointingsMax = 5

/**
 * Points the data teams' views at the current generation, if one of them shows another. Several processes may do this at once, so it checks
 * again afterwards: another process may have pointed them at the generation before.
 */
export async function showCurrent(place: RebuildTables): Promise<void> {
  for (let pointings = 0; pointings <= pointingsMax; pointings++) {
    const current = await readCurrent(place.tables, place.databases.base)
    const { tables, databases, options } = await definitionOf(place, current)
    const servers = serversOf(place, current)
    const areShown = await onEach(servers, server => areViewsOf(server.tables, databases, options))
    if (!areShown.includes(false)) return
    await pointViews(tables, databases, options)
  }
  throw new Error('other processes make the views at the same time')
}

/** The views read as they did before. */
async function definitionOf(place: RebuildTables, generation: number) {
  const { cluster } = place
  const [server] = serversOf(place, generation)
  if (!server) throw new Error('the cluster has no shards')
  const { tables, databases } = server
  const [known] = await tables.rows<{ isReplicated: boolean; hasDefiner: boolean }>({
    query: `SELECT countIf(name = 'identity' AND startsWith(engine, 'Replicated')) > 0 AS isReplicated,
              countIf(name = 'revoked_keys' AND position(create_table_query, 'DEFINER = ${definerUser}') > 0) > 0 AS hasDefiner
            FROM system.tables WHERE database = {base:String}`,
    query_params: { base: databases.base },
  })
  const options: MigrateOptions = {
    ...(cluster && { replicated: { cluster: cluster.name } }),
    ...(known?.hasDefiner && { viewsDefiner: definerUser }),
  }
  const isReplicated = known?.isReplicated ?? false
  return { tables: cluster ? onEveryShard(cluster.shards, { isReplicated }) : tables, databases, options }
}

/** Drops the databases of a generation, if they are there. It has to be noted as dropped before. */
export async function dropDatabases(place: RebuildTables, generation: number): Promise<void> {
  await onEach(serversOf(place, generation), async ({ tables, databases }) => {
    const whole = distributedDatabases(databases)
    const names = [databases.read, databases.ledger, ...(place.cluster ? [whole.read, whole.ledger] : [])]
    for (const name of names) await tables.run({ query: `DROP DATABASE IF EXISTS ${name} SYNC` })
  })
}

/** Whether a shard has several replicas. Then nothing tells that a statement has ended on all of them. */
export async function hasReplicas(
  { tables }: Pick<RebuildTables, 'tables'>,
  cluster: string,
): Promise<boolean> {
  const [row] = await tables.rows<{ replicas: number }>({
    query: `SELECT max(servers) AS replicas FROM
              (SELECT count() AS servers FROM system.clusters WHERE cluster = {cluster:String} GROUP BY shard_num)`,
    query_params: { cluster },
  })
  return Number(row?.replicas ?? 0) > 1
}

/** Runs the work side by side. When all of it has ended, throws the first failure. */
export async function onEach<Part, Result>(
  parts: readonly Part[],
  work: (part: Part) => Promise<Result>,
): Promise<Result[]> {
  const ended = await Promise.allSettled(parts.map(work))
  return ended.map(one => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}
