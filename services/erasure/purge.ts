/** A purge: makes what events have deleted or replaced really gone, in each copy of the data, and reports what it did. */
import { removeExports } from '../exports/write.ts'
import { isWorking } from '../generations/rebuild-log.ts'
import type { Rebuilds } from '../generations/rebuilds.ts'
import type { PartitionLag } from '../log/port.ts'
import { untilFolded, untilProjected } from '../projector/positions/until-projected.ts'
import type { Config } from '../runtime/config.ts'
import type { FollowedDatabases } from '../tables/generation-log.ts'
import type { Shard } from '../tables/port.ts'
import { purgeLookMs, purgeLookMsMax, writePurge } from '../tables/schema/identity.ts'
import { leftOver, type PurgedCopy, type PurgeReport, purged, tried, unreached } from './report.ts'
import { purgeTables, type TablesPurge } from './tables.ts'

/** The copies of one deployment (embedded/purge-copies.ts, distributed/purge-copies.ts). */
export interface Copies {
  whole: Shard & { databases: FollowedDatabases }
  /** Those that have the rows of `whole`: itself, if it is one server. */
  shards: readonly Shard[]
  rebuilds: Pick<Rebuilds, 'report' | 'drop'>
  /** Whether query processes may run. */
  isServed: boolean
  /** The projectors' lag. */
  lag(): Promise<PartitionLag[]>
  /** Never throws. */
  purgeLog(settings: TablesPurge): Promise<PurgedCopy[]>
  /** What nothing here can purge. */
  others(): Promise<PurgedCopy[]>
}

/** Throws if the projectors do not get to the end of the log. Anything else that fails is part of the report. */
export async function purge(copies: Copies, settings: TablesPurge, config: Config): Promise<PurgeReport> {
  const { whole, shards } = copies
  const { isDry, now } = settings
  const started_at = new Date(now()).toISOString()
  if (!isDry) {
    // Only then the tables know what was deleted.
    const wayOn = ': let the projector get to the end of the log, then run the purge again'
    const bounds = { msMax: settings.msMax, wayOn }
    await untilProjected(copies.lag, bounds, settings)
    for (const shard of shards) await untilFolded(shard, bounds, settings)
  }
  const done = await copies.purgeLog(settings)
  for (const [index, shard] of shards.entries()) {
    const prefix = shard.tables === whole.tables ? '' : `shard ${index + 1}, `
    done.push(...(await purgeTables(shard, settings, { prefix, wholeBase: whole.databases.base })))
  }
  done.push(await tried('previous tables', () => purgeRebuilds(copies, isDry)), ...(await copies.others()))
  const directory = config.PLEDGEVIEW_EXPORT_DIR
  if (directory !== undefined) done.push(await tried('whole copies', () => purgeExports(directory, isDry)))
  done.push(
    copies.isServed
      ? await tried('cached answers', () => purgeCaches(whole, config, settings))
      : purged('cached answers', 'no service runs'),
  )
  const is_complete = done.every(({ is_reached }) => is_reached)
  return { is_dry_run: isDry, started_at, is_complete, copies: done }
}

/** A whole copy has what was public when it was made. */
async function purgeExports(directory: string, isDry: boolean): Promise<PurgedCopy> {
  const removed = await removeExports(directory, isDry)
  const done = `${isDry ? 'removes' : 'removed'} ${removed}: run pledgeview export for a new one`
  return purged('whole copies', removed === 0 ? 'none' : done)
}

/**
 * Tells the query processes to forget what they keep, once everything is folded: they cannot read the same again. The ids of a
 * list stay until it expires, because the pages of a walk come from one snapshot.
 */
async function purgeCaches(
  { tables, databases }: Shard,
  config: Config,
  { isDry, now, sleep }: TablesPurge,
): Promise<PurgedCopy> {
  const copy = 'cached answers'
  if (isDry) return purged(copy, 'tells the query processes to forget them')
  await writePurge(tables, databases, new Date(now()).toISOString())
  await sleep(2 * purgeLookMs)
  const lateMs = 2 * (purgeLookMs + purgeLookMsMax)
  const left = `ids in lists of a moment ago; in Redis, answers that no process reads any more; if ClickHouse takes seconds to answer, answers for up to ${lateMs / 1000} s`
  return leftOver(
    copy,
    'forgotten by the query processes that can read these tables',
    left,
    now() + Math.max(config.PLEDGEVIEW_CACHE_MS, config.PLEDGEVIEW_STATS_CACHE_MS, lateMs),
  )
}

/**
 * Purges what the last rebuild has left: the tables from before it. They are dropped, so there is no rollback afterwards. If another
 * generation than the one that was purged became current meanwhile, nothing is dropped: its tables are not purged yet.
 */
async function purgeRebuilds({ rebuilds, whole }: Copies, isDry: boolean): Promise<PurgedCopy> {
  const copy = 'previous tables'
  const { generation } = whole.databases
  const latest = await rebuilds.report()
  if (latest && isWorking(latest)) {
    const reason =
      'a rebuild is not finished: let it end or drop it (pledgeview rebuild drop), then run the purge again'
    return unreached(copy, reason)
  }
  if (!latest?.isPreviousKept && !latest?.isHalfDropped) return purged(copy, 'none are kept')
  if (isDry) return purged(copy, 'drops them: no rollback after that')
  await rebuilds.drop(generation)
  return purged(copy, 'dropped: no rollback any more')
}
