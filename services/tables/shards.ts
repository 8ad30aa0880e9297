/**
 * The shards of a cluster, each at a URL that leads only to its replicas. One fold worker works on each shard.
 *
 * If two fold workers worked on one shard and none on another, the other's campaigns would never be folded, without
 * any error. So the URLs are compared with the cluster before anything is folded. And replicas need a version of ClickHouse
 * that refuses inserts while an earlier one is undecided: on others, consumers of the API would miss changes.
 */
import { openTables, type TablesSettings } from './clickhouse/clickhouse.ts'
import type { Databases, Shard, Tables } from './port.ts'
import { onOneServer } from './schema/replicated.ts'

/** The URLs do not lead to each of the cluster's shards once. */
export class ShardsDiffer extends Error {
  override name = 'ShardsDiffer'
}

/** The version of ClickHouse is too old for replicas. */
export class VersionTooOld extends Error {
  override name = 'VersionTooOld'
}

// fold-leadership.ts says what it relies on.
const replicasSince = [26, 2] as const

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

/**
 * Throws `ShardsDiffer` if the URLs do not lead to each shard once, `VersionTooOld` if the cluster has replicas on a version that
 * is too old for them, or the error of ClickHouse.
 */
export async function checkShards({ shards }: Shards, cluster: string): Promise<void> {
  const found = await Promise.all(
    shards.map(async ({ tables }) => {
      const [row] = await tables.rows<ServerOfShard>({
        query: `SELECT getMacro('shard') AS shard, version() AS version, found.1 AS shards, found.2 AS replicas
                FROM (SELECT (uniqExact(shard_num), max(replica_num)) AS found
                      FROM system.clusters WHERE cluster = {cluster:String})`,
        query_params: { cluster },
      })
      return row ?? { shard: '', version: '', shards: 0, replicas: 0 }
    }),
  )
  for (const server of found) checkVersion(server)
  for (const { shards: known } of found) {
    if (known === shards.length) continue
    throw new ShardsDiffer(`the cluster ${cluster} has ${known} shards, and ${shards.length} URLs are given`)
  }
  const names = found.map(({ shard }) => shard)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new ShardsDiffer(`two URLs lead to the shard ${twice} of the cluster ${cluster}`)
}

interface ServerOfShard {
  shard: string
  /** As `26.7.2.1`. */
  version: string
  shards: number
  /** Of the shard that has most. */
  replicas: number
}

/** Throws `VersionTooOld` if there are replicas, and the version is too old for them. */
export function checkVersion({
  shard,
  version,
  replicas,
}: Pick<ServerOfShard, 'shard' | 'version' | 'replicas'>): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin, minorMin] = replicasSince
  if (replicas < 2 || major > majorMin || (major === majorMin && minor >= minorMin)) return
  throw new VersionTooOld(
    `the shard ${shard} has ClickHouse ${version}, but replicas need ${replicasSince.join('.')} or later`,
  )
}

/** Tables whose definitions go to each shard, one statement after the other: without Keeper, nothing runs ON CLUSTER. */
export function onEveryShard(shards: readonly Shard[], { isReplicated }: { isReplicated: boolean }): Tables {
  const [first] = shards
  if (!first) throw new ShardsDiffer('the cluster has no shards')
  const each = async (work: (tables: Tables) => Promise<void>) => {
    await Promise.all(shards.map(({ tables }) => work(tables)))
  }
  return {
    ...first.tables,
    run: statement =>
      each(tables => tables.run({ ...statement, query: onOneServer(statement.query, { isReplicated }) })),
    // Every server knows which files have run. Other rows are sharded.
    insert: insert =>
      insert.table.endsWith('.migrations')
        ? each(tables => tables.insert(insert))
        : first.tables.insert(insert),
  }
}
