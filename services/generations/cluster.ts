/** A rebuild on a cluster: its shards, which tables it makes there, and which clusters it cannot rebuild. */
import type { Databases, Shard, Tables } from '../tables/port.ts'

/** A shard, under the name that its server has for it (the macro `shard`). */
export interface NamedShard extends Shard {
  name: string
}

export interface RebuildCluster {
  /** In `remote_servers`. */
  name: string
  shards: readonly NamedShard[]
}

/** The tables that a rebuild works on. On a cluster `tables` and `databases` are those over all shards. */
export interface RebuildTables {
  tables: Tables
  databases: Databases
  cluster?: RebuildCluster | undefined
}

/** The name of the shard that this server belongs to. */
export async function shardNameOf(tables: Pick<Tables, 'rows'>): Promise<string> {
  const [row] = await tables.rows<{ shard: string }>({ query: `SELECT getMacro('shard') AS shard` })
  return row?.shard ?? ''
}

export async function nameShards(shards: readonly Shard[]): Promise<NamedShard[]> {
  return Promise.all(shards.map(async shard => ({ ...shard, name: await shardNameOf(shard.tables) })))
}

/**
 * Whether a shard has several replicas. Then its tables cannot be swapped: EXCHANGE TABLES swaps those of one server, so until the
 * other replicas follow, a campaign would show its new and its old content in turns.
 */
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
