/**
 * The shards of a cluster, each behind a URL that leads to its replicas alone: where the folders work.
 *
 * A folder that looked at one shard while another had none would leave the other's campaigns unfolded for ever, and
 * nothing would say so: hence the URLs are compared with the cluster before anything is folded.
 */
import { openServerTables, type ServerSettings } from './clickhouse-server.ts'
import type { Databases, Shard } from './port.ts'

/** The URLs are not those of the cluster's shards, one each. */
export class ShardsDiffer extends Error {
  override name = 'ShardsDiffer'
}

export interface Shards {
  shards: readonly Shard[]
  close(): Promise<void>
}

/** Connects to nothing yet. `settings`: of the cluster; `databases`: of a shard's own part of the tables. */
export function openShards(settings: ServerSettings, urls: readonly string[], databases: Databases): Shards {
  const shards = urls.map(url => ({ tables: openServerTables({ ...settings, url }), databases }))
  return {
    shards,
    async close() {
      await Promise.all(shards.map(({ tables }) => tables.close()))
    },
  }
}

/** Throws `ShardsDiffer` where the URLs do not lead to all shards, and to each once; or what ClickHouse said. */
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
