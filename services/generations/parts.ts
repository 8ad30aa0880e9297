/**
 * The parts of the tables that a rebuild swaps: on one server the tables themselves, on a cluster each shard's own part.
 *
 * On a cluster the log is read once, into the ledgers of all shards. Everything else is done for each shard as on one server: its
 * fold, its withdrawals, its verification, its fold pause, its stamps and its swap. A campaign is on one shard with all its
 * pledges, so it is shown old or new as a whole at every moment.
 *
 * The shards are swapped one after the other. What others see between two swaps, also if the rebuild is killed there:
 * - Every campaign, from the old or from the new tables. A total over all shards is the sum of old and new parts. No part shows
 *   less than it did: each swap brings its tables to the end of the log first, while the shard's fold is paused. So a total gets
 *   smaller only by what a changed rule takes out, and the number of backers by those that were counted before their pledges were
 *   folded (contracts/tables/0005-views.sql).
 * - Stamps, the floor and the watermark belong to the shard, and its swap moves them as on one server: changed rows get stamps at
 *   or above the shard's floor, which no watermark has passed. The watermark of the whole is the lowest of all shards. So a
 *   poller misses no change of any swap, whichever shards are swapped when it polls.
 * - A list is one statement, or an index that follows the stamps. It may have the new rows of one shard and the old rows of
 *   another, as it has changes of different moments at any time. Pages of one query come from one snapshot of it.
 * - What projectors wrote to a swapped shard just before its swap may be in its previous tables only. Each shard has its own
 *   positions, which are swapped with it, and projectors read on from the lowest (positions.ts). A row that is written twice
 *   changes nothing. What the rebuild goes on reading for the other shards goes into the previous tables of this one as well.
 * - Each shard's swap is recorded before it happens. The next run finds by the tables' UUIDs which shards are swapped, and swaps
 *   the others. Once one is swapped, the rebuild cannot be given up, because shards would stay on different rules. It can be
 *   completed, and then rolled back.
 */
import { foldWorkerSettings } from '../projector/fold/fold-settings.ts'
import type { FoldWorker } from '../projector/fold/fold-worker.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { onHalfTheCores } from './build/half-the-cores.ts'
import { createShadowFoldWorker } from './build/shadow-fold.ts'
import { type RetrySettings, withRetry } from './build/with-retry.ts'
import { createWithdrawals, type Withdrawals } from './build/withdrawals.ts'
import type { RebuildCluster } from './cluster.ts'
import { createTouched, type Touched } from './compare/touched.ts'
import type { RebuildDependencies } from './context.ts'

export interface RebuildPart {
  /** The name of the shard; null: the tables are on one server. */
  name: string | null
  databases: Databases
  /** They retry statements, and use half of ClickHouse's cores. */
  tables: Tables
  /** The same tables with all cores, for statements that the fold waits for. */
  tablesOnAllCores: Tables
  /** The same tables without retries, for statements that must not run twice. */
  tablesWithoutRetry: Tables
  /** Of the shadow tables. */
  foldWorker: FoldWorker
  withdrawals: Withdrawals
  touched: Touched
  /** Whether the rebuilt tables are live. */
  isSwapped: boolean
}

export async function createParts(
  dependencies: RebuildDependencies,
  retrySettings: RetrySettings,
): Promise<RebuildPart[]> {
  const { tables, databases, cluster, run, config, monotonicMs, random } = dependencies
  const { sleep } = retrySettings
  const places = cluster?.shards ?? [{ tables, databases, name: null }]
  return Promise.all(
    places.map(async ({ tables: tablesWithoutRetry, databases, name }) => {
      const tablesOnAllCores = withRetry(tablesWithoutRetry, retrySettings)
      const tables = await onHalfTheCores(tablesOnAllCores)
      const settings = foldWorkerSettings(config)
      return {
        name,
        databases,
        tables,
        tablesOnAllCores,
        tablesWithoutRetry,
        foldWorker: createShadowFoldWorker({ tables, databases, settings, run, monotonicMs, sleep, random }),
        withdrawals: createWithdrawals({ tables, databases, run }),
        touched: createTouched(),
        isSwapped: false,
      }
    }),
  )
}

/** The cluster with the tables of the parts, which retry statements. */
export function clusterOf(
  { cluster }: Pick<RebuildDependencies, 'cluster'>,
  parts: readonly RebuildPart[],
): RebuildCluster | undefined {
  if (!cluster) return undefined
  const shards = parts.map(({ name, tables, databases }) => ({ name: name ?? '', tables, databases }))
  return { ...cluster, shards }
}
