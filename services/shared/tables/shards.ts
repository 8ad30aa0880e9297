/**
 * The shards of a cluster, each at a URL that leads only to its replicas. One fold worker works on each shard.
 *
 * If two fold workers worked on one shard and none on another, the other's campaigns would never be folded, without
 * any error. So the URLs are compared with the cluster before anything is folded.
 */
import { openTables, type TablesSettings } from './clickhouse.ts'
import type { Databases, Shard } from './port.ts'

/** The URLs do not lead to each of the cluster's shards once. */
export class ShardsDiffer extends Error {
  override name = 'ShardsDiffer'
}

export interface Shards {
  shards: readonly Shard[]
  close(): Promise<void>
}

/** Does not connect yet. `settings` are the cluster's, `databases` are those of a shard's own part of the tables. */
export function openShards(settings: TablesSettings, urls: readonly string[], databases: Databases): Shards {
  const shards = urls.map(url => ({ tables: openTables({ ...settings, url }), databases }))
  return {
    shards,
    async close() {
      await Promise.all(shards.map(({ tables }) => tables.close()))
    },
  }
}

/** Throws `ShardsDiffer` if the URLs do not lead to each shard once, or the error of ClickHouse. */
export async function checkShards({ shards }: Shards, cluster: string): Promise<void> {
  const found = await Promise.all(
    shards.map(async ({ tables }) => {
      const [row] = await tables.rows<{ shard: string; shards: number }>({
        query: `SELECT getMacro('shard') AS shard,
                  (SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = {cluster:String}) AS shards`,
        query_params: { cluster },
      })
      return row ?? { shard: '', shards: 0 }
    }),
  )
  for (const { shards: known } of found) {
    if (known === shards.length) continue
    throw new ShardsDiffer(`the cluster ${cluster} has ${known} shards, and ${shards.length} URLs are given`)
  }
  const names = found.map(({ shard }) => shard)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new ShardsDiffer(`two URLs lead to the shard ${twice} of the cluster ${cluster}`)
}
