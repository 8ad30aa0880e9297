/**
 * The shards of a cluster, each a server at its own URL. One fold worker works on each shard, and `migrate` makes the tables of each.
 *
 * If two fold workers worked on one shard and none on another, the other's campaigns would never be folded, without
 * any error. So the URLs are compared with the cluster before anything is made or folded. A shard has one replica: behind the URL of several,
 * nothing would tell when a statement of the fold has ended on all of them.
 */
import { openTables, type TablesSettings } from './clickhouse/clickhouse.ts'
import type { Databases, Shard } from './port.ts'
import type { MigratedTables } from './schema/migrate.ts'

export type Shards = ReturnType<typeof openShards>

/** Does not connect yet. `settings` are the cluster's, `databases` are those of a shard's own part of the tables. */
export function openShards(settings: TablesSettings, urls: readonly string[], databases: Databases) {
  const shards: readonly Shard[] = urls.map(url => ({ tables: openTables({ ...settings, url }), databases }))
  return {
    shards,
    async close() {
      await Promise.all(shards.map(({ tables }) => tables.close()))
    },
  }
}

/** Throws if the URLs do not lead to each shard once or if a shard has replicas, or the error of ClickHouse. */
export async function checkShards({ shards }: Shards, cluster: string): Promise<void> {
  const statement = {
    query: `SELECT getMacro('shard') AS shard, found.1 AS shards, found.2 AS replicas, found.3 AS largest
            FROM (SELECT (uniqExact(shard_num), max(replica_num), argMax(shard_num, replica_num)) AS found
                  FROM system.clusters WHERE cluster = {cluster:String})`,
    query_params: { cluster },
  }
  const found = (await Promise.all(shards.map(({ tables }) => tables.rows<ServerOfShard>(statement)))).flat()
  // A profile may leave out the row of a count of nothing.
  if (found.length !== shards.length) throw new Error(`remote_servers has no cluster ${cluster}`)
  for (const { shards: known, replicas, largest } of found) {
    if (known !== shards.length)
      throw new Error(`the cluster ${cluster} has ${known} shards, and ${shards.length} URLs are given`)
    if (replicas > 1)
      throw new Error(
        `shard ${largest} of the cluster ${cluster} has ${replicas} replicas in remote_servers: leave one (deploy/grow.md, "Shards")`,
      )
  }
  const names = found.map(({ shard }) => shard)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`two URLs lead to the shard ${twice} of the cluster ${cluster}`)
}

interface ServerOfShard {
  /** The macro of the server. */
  shard: string
  shards: number
  /** Of the shard that has most, which is the number `largest`. */
  replicas: number
  largest: number
}

/** Tables whose definitions go to each shard, one statement after the other. Everything else goes to the first. */
export function onEveryShard(shards: readonly Shard[]): MigratedTables {
  const all = shards.map(({ tables }) => tables)
  const [first] = all
  if (!first) throw new Error('the cluster has no shards')
  return {
    ...first,
    shards: all,
    async run(statement) {
      await Promise.all(all.map(tables => tables.run(statement)))
    },
  }
}
