/**
 * Takes over the stamps (`updated_at`) of other tables that are filled from the same log: of a cluster with another number of
 * shards, beside which this one was filled by its own projectors. Then the query processes can be pointed to these tables, and
 * no poller fetches the world again.
 *
 * Promises, as long as no query process reads these tables yet:
 * - A campaign with the same content gets the stamp that it has there. A poller that goes on with a watermark of the other tables
 *   gets exactly what it would have got there.
 * - A campaign with other content, or that only these tables have, gets a stamp that no poller of the other tables has passed: the
 *   stamp floor is raised above theirs first. So the poller fetches it.
 * - The fold of the other tables is stopped first, and stays stopped, whichever projector starts (stopped-fold.ts). So nothing moves
 *   their floor and their stamps, until `releaseStamps` is asked for. If this fails, a stop that it began is ended.
 * - It refuses if campaigns, pledges or keys of the other tables are missing here, unless that is accepted; and always if some are shown
 *   here that the other tables withdrew: the log has lost the withdrawal.
 * - Until query processes read these tables, it may be killed at any point, and repeated. After that it must not run: a poller may
 *   have seen stamps that it would take back. In the other direction it is the way back.
 * - A rebuild, or a second run, beside it: at most one of them succeeds. A rebuild that paused the fold before cannot swap any
 *   more (swap-permit.ts), and a second run takes the stop over, which the first finds at its end.
 * How it fails: it throws `StampsRefused` with what has to be done first, `FoldPauseLost`, or what ClickHouse throws.
 */
import { foldWorkerSettings } from '../projector/fold/fold-settings.ts'
import type { FoldWorkerSettings } from '../projector/fold/fold-worker.ts'
import type { Config } from '../shared/config.ts'
import { messageOf } from '../shared/message-of.ts'
import type { Sleep } from '../shared/sleep.ts'
import type { Shard } from '../shared/tables/port.ts'
import { onEach, type RebuildTables } from './cluster.ts'
import { comparePledges } from './compare-pledges.ts'
import { isWorking, latestRebuild } from './rebuild-log.ts'
import { readTableIds } from './shadow-tables.ts'
import {
  type Compared,
  compare,
  countStamps,
  dropStaged,
  type Staged,
  stage,
  stagedOf,
} from './staged-stamps.ts'
import { stampRanges } from './stamp-ranges.ts'
import { isStopped, releaseFold, type StopDependencies, stopFold } from './stopped-fold.ts'

export interface TakeStampsDependencies extends RebuildTables {
  /** The other tables: of the one server, or each shard's own. */
  from: readonly Shard[]
  config: Config
  /** Go on although something of the other tables is missing here. */
  acceptsLoss: boolean
  /** Names this run; unique. */
  run: string
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
}

export interface TakenStamps {
  /** Public campaigns of these tables with the content and the stamp of the other ones. */
  same: number
  /** Those that pollers will fetch: with other content, or not in the other tables. */
  different: number
  /** Campaigns and keys of the other tables that are missing here, older, or without some of their pledges. It was accepted. */
  missing: number
}

/** The stamps cannot be taken over in the present state. The message says what has to be done. */
export class StampsRefused extends Error {
  override name = 'StampsRefused'
}

const sharedSettings = ['PLEDGEVIEW_BACKER_KEY', 'PLEDGEVIEW_KEY_PEPPER', 'PLEDGEVIEW_PLATFORM_CURRENCY']

export async function takeStamps(dependencies: TakeStampsDependencies): Promise<TakenStamps> {
  const { from, run } = dependencies
  const places = placesOf(dependencies)
  await checkOtherTables(from, places)
  await refuseRebuilds(dependencies)
  await checkIdentity(from, places)
  const settings = await settingsOf(dependencies)
  const stopped = await onEach(from, shard => isStopped(shard))
  const wasStopped = stopped.every(Boolean)
  if (!wasStopped) await refuseFolded(dependencies, settings)
  try {
    return await takeStopped(dependencies, places, settings)
  } catch (error) {
    // Their projectors may go on. A stop of an earlier run, or of a second one, is not this run's to end.
    if (wasStopped) throw error
    await onEach(from, async shard => {
      if (await isStopped(shard, run)) await releaseFold(shard, run)
    }).catch(() => {
      throw new StampsRefused(
        `${messageOf(error)}. The fold of the other tables is still stopped: run pledgeview rebuild stamps --release with their settings`,
        { cause: error },
      )
    })
    throw error
  }
}

/** Lets projectors fold these tables again, after other tables took over their stamps. Resolves with whether that was stopped. */
export async function releaseStamps(tables: RebuildTables, run: string): Promise<boolean> {
  return (await onEach(placesOf(tables), shard => releaseFold(shard, run))).includes(true)
}

function placesOf({ tables, databases, cluster }: RebuildTables): readonly Shard[] {
  return cluster?.shards ?? [{ tables, databases }]
}

async function takeStopped(
  dependencies: TakeStampsDependencies,
  places: readonly Shard[],
  settings: FoldWorkerSettings,
): Promise<TakenStamps> {
  const { from, run, config, monotonicMs, sleep, random, acceptsLoss } = dependencies
  const stop: StopDependencies = { run, settings, monotonicMs, sleep, random }
  await onEach(from, shard => stopFold(shard, stop))
  const reached = await readReached(from)
  try {
    const staged = await stage(from, places, run)
    const compared = both(
      await compareWith(dependencies, places, staged),
      await comparePledges(from, places, staged),
    )
    refuseLosses(compared, acceptsLoss)
    const held = { run, settings: foldWorkerSettings(config), monotonicMs, sleep, random }
    await onEach(places, ({ tables, databases }) =>
      stampRanges(
        { ...held, tables, tablesWithoutRetry: tables, databases, epochFloor: async () => 0n },
        { taken: staged.stamps, reached },
      ),
    )
    const counts = await onEach(places, place => countStamps(place, staged))
    await refuseRebuilds(dependencies)
    if ((await onEach(from, shard => isStopped(shard, run))).includes(false)) {
      throw new StampsRefused(
        'another process took over the fold of the other tables: stop their projectors, and run it again',
      )
    }
    return {
      same: counts.reduce((sum, { same }) => sum + same, 0),
      different: counts.reduce((sum, { different }) => sum + different, 0),
      missing: compared.missing,
    }
  } finally {
    await onEach(places, place => dropStaged(place, stagedOf(run))).catch(() => undefined)
  }
}

function both(one: Compared, other: Compared): Compared {
  return {
    withdrawn: one.withdrawn + other.withdrawn,
    withdrawnIds: [...one.withdrawnIds, ...other.withdrawnIds],
    missing: one.missing + other.missing,
    missingIds: [...one.missingIds, ...other.missingIds],
  }
}

function compareWith(
  { databases }: TakeStampsDependencies,
  [first]: readonly Shard[],
  staged: Staged,
): Promise<Compared> {
  if (!first) throw new Error('there is no server')
  return compare({ databases }, first, staged)
}

/** The other tables are tables of their own, and were folded. */
async function checkOtherTables(from: readonly Shard[], places: readonly Shard[]): Promise<void> {
  const idsOf = async ({ tables, databases }: Shard) => (await readTableIds(tables, databases)).campaigns
  const own = new Set(await onEach(places, idsOf))
  for (const id of await onEach(from, idsOf)) {
    if (own.has(id)) throw new StampsRefused('the address of the other tables leads to these tables')
  }
  const folded = await onEach(from, async ({ tables, databases: { model } }) => {
    const [row] = await tables.rows<{ floors: number; campaigns: number }>({
      query: `SELECT (SELECT count() FROM ${model}.stamp_floor) AS floors,
                (SELECT count() FROM (SELECT 1 FROM ${model}.campaign_ledger LIMIT 1)) AS campaigns`,
    })
    return { floors: Number(row?.floors ?? 0), campaigns: Number(row?.campaigns ?? 0) }
  })
  if (folded.some(({ floors }) => floors === 0) || folded.every(({ campaigns }) => campaigns === 0)) {
    throw new StampsRefused('the other tables were never filled: give the address of those that pollers read')
  }
}

async function refuseRebuilds({ from, ...own }: TakeStampsDependencies): Promise<void> {
  const latest = await latestRebuild(own.tables, own.databases)
  if (latest && isWorking(latest)) throw new StampsRefused('a rebuild of these tables is not finished')
  // On a cluster the log is on one of the shards.
  const others = await onEach(from, ({ tables, databases }) => latestRebuild(tables, databases))
  if (others.some(other => other && isWorking(other))) {
    throw new StampsRefused('a rebuild of the other tables is not finished')
  }
}

/** With another key, currency or pepper the same events give other campaigns, or no API key is valid. */
async function checkIdentity(from: readonly Shard[], places: readonly Shard[]): Promise<void> {
  const [here, there] = [await readIdentity(places), await readIdentity(from)]
  for (const setting of sharedSettings) {
    const [own, other] = [here.get(setting), there.get(setting)]
    if (own === undefined || other === undefined || own === other) continue
    throw new StampsRefused(`${setting} of the other tables differs from that of these tables`)
  }
}

async function readIdentity(shards: readonly Shard[]): Promise<ReadonlyMap<string, string>> {
  const rows = await onEach(shards, ({ tables, databases }) =>
    tables.rows<{ setting: string; fingerprint: string }>({
      query: `SELECT DISTINCT setting, fingerprint FROM ${databases.model}.identity
              WHERE setting IN {settings:Array(String)}`,
      query_params: { settings: sharedSettings },
    }),
  )
  return new Map(rows.flat().map(({ setting, fingerprint }) => [setting, fingerprint]))
}

/** For the fold of the other tables, whose statements run as long as the longest commit horizon that they ever had. */
async function settingsOf({ from, config }: TakeStampsDependencies): Promise<FoldWorkerSettings> {
  const settings = foldWorkerSettings(config)
  const horizons = await onEach(from, async ({ tables, databases }) => {
    const [row] = await tables.rows<{ longest: number }>({
      query: `SELECT max(toUInt32OrZero(fingerprint)) AS longest FROM ${databases.model}.identity
              WHERE setting = 'PLEDGEVIEW_COMMIT_HORIZON_MS'`,
    })
    return Number(row?.longest ?? 0)
  })
  const horizonMs = Math.max(settings.horizonMs, ...horizons)
  return { ...settings, horizonMs, settleMs: horizonMs }
}

/**
 * A leader writes the floor at least four times in a commit horizon. The stop would end its fold, so this look is not needed for
 * the promises. It is for an operator who confuses the two sides: tables that are folded are probably those that shall be read.
 */
async function refuseFolded(
  { from, sleep }: TakeStampsDependencies,
  { horizonMs }: FoldWorkerSettings,
): Promise<void> {
  const before = await onEach(from, readFloor)
  await sleep(horizonMs)
  const after = await onEach(from, readFloor)
  if (after.every((floor, index) => floor === before[index])) return
  throw new StampsRefused('the other tables are still folded: stop their projectors, and run it again')
}

/** Unix ms. */
async function readFloor({ tables, databases }: Shard): Promise<number> {
  const [row] = await tables.rows<{ reached: number }>({
    query: `SELECT toUnixTimestamp64Milli(max(reached)) AS reached FROM ${databases.model}.stamp_floor`,
  })
  return Number(row?.reached ?? 0)
}

/** No watermark of the other tables is above it, and every stamp of them is below it. Unix ms, as text. */
async function readReached(from: readonly Shard[]): Promise<string> {
  const all = await onEach(from, async shard => {
    const [row] = await shard.tables.rows<{ latest: number }>({
      query: `SELECT toUnixTimestamp64Milli(max(updated_at)) AS latest FROM ${shard.databases.model}.campaigns`,
    })
    return Math.max(await readFloor(shard), Number(row?.latest ?? 0) + 1)
  })
  return String(Math.max(...all))
}

function refuseLosses(compared: Compared, acceptsLoss: boolean): void {
  const { withdrawn, withdrawnIds, missing, missingIds } = compared
  if (withdrawn > 0) {
    throw new StampsRefused(
      `${listed(withdrawn, withdrawnIds)} shown here, but deleted, hidden or revoked in the other tables: the log has lost that. ` +
        'Append the deletion to the log again, wait until pledgeview status shows no lag, and run it again',
    )
  }
  if (missing > 0 && !acceptsLoss) {
    throw new StampsRefused(
      `${listed(missing, missingIds)} in the other tables, but missing or older here. Wait until pledgeview status shows no lag and no ` +
        'pending batches. If the log does not have them any more, --accept-loss goes on without them: they vanish',
    )
  }
}

function listed(count: number, ids: readonly string[]): string {
  const more = count > ids.length ? ` and ${count - ids.length} more` : ''
  return `${ids.join(', ')}${more} ${count === 1 ? 'is' : 'are'}`
}
