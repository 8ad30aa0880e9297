/** The lease of a rebuild: only one process at a time may work on rebuilds. */
import { programVersion } from '../runtime/program-version.ts'
import type { Sleep } from '../runtime/sleep.ts'
import { hasShadow, hasWholeShadow } from './build/shadow-tables.ts'
import type { RebuildTables } from './cluster.ts'
import {
  aliveMs,
  isAlive,
  isCommitted,
  isWorking,
  keptTables,
  latestRebuild,
  type RebuildDetail,
  RebuildInProgress,
  type RebuildRequest,
  type RebuildState,
  rivalOf,
  writeRebuild,
} from './rebuild-log.ts'

export interface LeaseDependencies extends RebuildTables {
  /** Names this run; unique. */
  run: string
  /** Whether no other process can work on the tables, as in an embedded service. */
  isAlone: boolean
  sleep: Sleep
  /** Unix ms. */
  now: () => number
}

/** The request cannot be carried out in the current state. The message says what is possible. */
export class RebuildRefused extends Error {
  override name = 'RebuildRefused'
}

const lookMs = 500
const rivalMs = 1_000
// Shorter than Kafka keeps tombstones by default, which is a day.
const resumeMsMax = 12 * 3_600_000

/**
 * Takes over the open rebuild if it has the same request and its process is dead, or begins a new one.
 * Throws `RebuildInProgress` or `RebuildRefused`.
 */
export async function acquireLease(
  dependencies: LeaseDependencies,
  request: RebuildRequest,
): Promise<RebuildState> {
  const { tables, databases, run, isAlone, sleep } = dependencies
  const latest = await untilNoOwner(dependencies)
  const state =
    latest && isWorking(latest)
      ? resumedRebuild(latest, request)
      : await newRebuild(dependencies, request, latest)
  const leased = { ...state, run }
  await writeRebuild(tables, databases, leased)
  if (!isAlone) {
    // Two processes that begin at the same time do not see each other at first.
    await sleep(rivalMs)
    const rival = await rivalOf(tables, databases, run)
    if (rival !== undefined) throw new RebuildInProgress(`another rebuild began at the same time (${rival})`)
  }
  return leased
}

/** The latest rebuild, once it has given no sign of life for long enough. Throws if it is alive. */
async function untilNoOwner({ tables, databases, isAlone, sleep }: LeaseDependencies) {
  const first = await latestRebuild(tables, databases)
  for (let state = first; ; state = await latestRebuild(tables, databases)) {
    if (!state || isAlone || !isAlive(state)) return state
    if (state.writtenAt !== first?.writtenAt) {
      throw new RebuildInProgress(
        `a rebuild is running (${state.phase}, begun ${state.detail.startedAt}); pledgeview rebuild status shows it`,
      )
    }
    await sleep(Math.min(lookMs, aliveMs - state.ageMs + 1))
  }
}

/** The open rebuild, as this run continues it. Pure. Throws `RebuildRefused` if it has another request. */
export function resumedRebuild(state: RebuildState, request: RebuildRequest): RebuildState {
  const { acceptsLoss, ignoresDisk } = request
  const open = state.detail.request
  const isSame = (['kind', 'fromTime', 'isDry'] as const).every(name => request[name] === open[name])
  if (!isSame || (state.isAborting && !isCommitted(state))) {
    throw new RebuildRefused(
      `a ${nameOf(open)} that began ${state.detail.startedAt} is not finished (${state.phase}): run the same command again to ` +
        'continue it, or give it up with pledgeview rebuild abort',
    )
  }
  const detail = { ...state.detail, request: { ...open, acceptsLoss, ignoresDisk }, failure: null }
  // Only the tables tell whether it has swapped any.
  if (isCommitted(state) || !isOutdated(state)) return { ...state, detail }
  return { ...state, phase: 'preparing', detail: { ...detail, ...begunAgain } }
}

/**
 * Whether an open rebuild has to begin again, unless tables are swapped. Another version of the program may have other rules. A
 * ledger of two versions would pass every check. And after a long interruption, deletions from that time may be gone from the log.
 *
 * Once tables are swapped, it goes on. A shard that is swapped has the rules of the version that began. If the others are
 * swapped too, all shards are as after an upgrade that follows a rebuild.
 */
export function isOutdated({ detail, ageMs }: Pick<RebuildState, 'detail' | 'ageMs'>): boolean {
  const isOld = detail.program !== programVersion || ageMs > resumeMsMax
  return isOld && detail.request.kind === 'rebuild'
}

/** What is recorded of a rebuild that begins again. */
export const begunAgain = {
  program: programVersion,
  records: 0,
  rejects: 0,
  tableIds: null,
  unstampedSince: null,
  shards: {},
} satisfies Partial<RebuildDetail>

async function newRebuild(
  dependencies: LeaseDependencies,
  request: RebuildRequest,
  latest: RebuildState | undefined,
): Promise<RebuildState> {
  if (request.kind === 'rollback' && request.isDry) throw new RebuildRefused('a rollback has no dry run')
  const { run, now } = dependencies
  const keepsPrevious = latest?.phase === 'rebuilt' && (await hasShadow(dependencies))
  if (request.kind === 'rebuild' && keepsPrevious) {
    throw new RebuildRefused(
      `${keptTables(latest)} are still kept, and a new rebuild would overwrite them: drop them with ` +
        'pledgeview rebuild drop, or return to them with pledgeview rebuild rollback',
    )
  }
  if (request.kind === 'rollback' && !keepsPrevious) {
    throw new RebuildRefused('there are no previous tables to return to')
  }
  if (request.kind === 'rollback' && !(await hasWholeShadow(dependencies))) {
    throw new RebuildRefused(
      'the previous tables are dropped in part: drop the rest with pledgeview rebuild drop',
    )
  }
  const at = new Date(now()).toISOString()
  return {
    id: at.replace(/\D/g, '').slice(0, 17),
    run,
    phase: 'preparing',
    writtenAt: '',
    ageMs: 0,
    isAborting: false,
    detail: {
      request,
      startedAt: at,
      phaseMs: {},
      progress: null,
      records: 0,
      rejects: 0,
      logStart: null,
      differences: null,
      tableIds: null,
      unstampedSince: null,
      program: programVersion,
      failure: null,
    },
  }
}

function nameOf({ kind, isDry }: RebuildRequest): string {
  return `${isDry ? 'dry ' : ''}${kind}`
}
