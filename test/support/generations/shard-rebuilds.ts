/** A live model on the shards of a cluster, with everything that a rebuild needs. */

import { clusterName, type ShardServers } from '../clickhouse/shards.ts'
import { awayFromMidnight } from '../runner/midnight.ts'
import { openRebuildable } from './rebuilds.ts'

const dayLeftMsMin = 60_000
// Several servers share the machine with other suites.
const settings = { PLEDGEVIEW_RETRY_MS_MAX: '600000' }

/** Opens it on the servers' tables. `hurry`: see `openRebuildable`. */
export async function openRebuildableShards(
  { tables, databases, shards }: ShardServers,
  options: { hurry?: number } = {},
) {
  await awayFromMidnight(dayLeftMsMin)
  const cluster = { name: clusterName, shards }
  return openRebuildable({ tables, databases, cluster }, { ...options, settings })
}
