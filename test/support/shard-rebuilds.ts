/** A live model on the shards of a cluster, with everything that a rebuild needs. */

import { countLive } from '../../services/generations/build/shadow-tables.ts'
import { nameShards } from '../../services/generations/cluster.ts'
import { latestRebuild, swapOf } from '../../services/generations/rebuild-log.ts'
import { awayFromMidnight } from './midnight.ts'
import { openRebuildable, type RebuildableModel } from './rebuilds.ts'
import { clusterName, type ShardServers } from './shards.ts'

const dayLeftMsMin = 60_000
// Several servers share the machine with other suites.
const settings = { PLEDGEVIEW_RETRY_MS_MAX: '600000' }

/** Opens it on the servers' tables. `journal`: see `openRebuildable`. */
export async function openRebuildableShards(
  { tables, databases, shards }: ShardServers,
  { settings: own = {}, ...log }: { journal?: string; settings?: Readonly<Record<string, string>> } = {},
): Promise<RebuildableModel> {
  await awayFromMidnight(dayLeftMsMin)
  const cluster = { name: clusterName, shards: await nameShards(shards) }
  return openRebuildable({ tables, databases, cluster }, { ...log, settings: { ...settings, ...own } })
}

/** The names of the shards on which the tables of the latest rebuild are live. */
export async function swappedShards({ tables, databases, cluster }: RebuildableModel): Promise<string[]> {
  const state = await latestRebuild(tables, databases)
  const swapped: string[] = []
  for (const shard of cluster?.shards ?? []) {
    const tableIds = state && swapOf(state.detail, shard.name).tableIds
    if (tableIds && (await countLive(shard.tables, shard.databases, tableIds)) > 0) swapped.push(shard.name)
  }
  return swapped
}

/** Runs the statement on each shard. `LIVE` is the database of its own part. */
export async function onShards({ cluster }: RebuildableModel, statement: string): Promise<void> {
  for (const { tables, databases } of cluster?.shards ?? []) {
    await tables.run({ query: statement.replaceAll('LIVE', databases.model) })
  }
}
