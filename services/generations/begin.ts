/** Begins a rebuild, or takes an open one over: decides which generation is built, and takes the attempt. */
import { programVersion } from '../runtime/program-version.ts'
import { megabytes } from '../runtime/progress.ts'
import { keptGeneration, readGenerations, standingGenerations, writeRow } from '../tables/generation-log.ts'
import type { Shard } from '../tables/port.ts'
import { takeAttempt } from './attempts.ts'
import {
  dropDatabases,
  dropGeneration,
  type RebuildContext,
  type RebuildDependencies,
  serversOf,
  withDatabases,
} from './context.ts'
import {
  consumerOf,
  findOwner,
  isWorking,
  keptTables,
  type RebuildRequest,
  type RebuildState,
  writeRebuild,
} from './rebuild-log.ts'

type BeginDependencies = RebuildDependencies & Pick<RebuildContext, 'generationLog' | 'from'>

// Shorter than Kafka keeps tombstones by default, which is a day.
const resumeMsMax = 12 * 3_600_000

/**
 * Takes over the open rebuild if it has the same request and its process is dead, or begins a new one. Throws if a process works on a
 * rebuild, or if the state does not allow the request: the message says what is possible.
 */
export async function beginRebuild(
  dependencies: BeginDependencies,
  request: RebuildRequest,
): Promise<RebuildState> {
  const { generationLog, run, from } = dependencies
  const { latest, isOwned } = await findOwner(generationLog, dependencies)
  if (latest && isOwned) {
    throw new Error(
      `a rebuild is running (${latest.phase}, begun ${latest.detail.startedAt}); pledgeview rebuild status shows it`,
    )
  }
  const known = standingGenerations(await readGenerations(generationLog))
  const standing = await withDatabases(dependencies, known)
  const isGone = latest !== undefined && !standing.includes(latest.generation)
  const open = latest && isWorking(latest) ? resumedRebuild(latest, request, { from, isGone }) : undefined
  const begun = open ?? (await newRebuild(dependencies, request, latest))
  const attempt = await takeAttempt(generationLog, run, dependencies)
  // It is dead, or too old. Nobody has to wait for it any more.
  if (latest) await writeRow(generationLog, { kind: 'given up', attempt: latest.attempt, run })
  if (latest && open && open.generation !== latest.generation)
    await dependencies.history.forget(consumerOf(latest))
  await dropLeftovers(dependencies, attempt, open)
  const generation = begun.generation || (await registerNext(dependencies, attempt))
  const state = { ...begun, attempt, run, generation }
  await writeRebuild(generationLog, state)
  return state
}

/**
 * The open rebuild, as this run continues it. `from`: the generation that is current. `isGone`: a drop of its generation was interrupted, or
 * a backup was restored without it, so it begins again with another one. Pure. Throws if it has another request, or if the
 * tables to return to are gone.
 */
export function resumedRebuild(
  state: RebuildState,
  request: RebuildRequest,
  { from, isGone }: { from: number; isGone: boolean },
): RebuildState {
  const { acceptsLoss, ignoresDisk } = request
  const open = state.detail.request
  if (request.kind !== open.kind || request.isDry !== open.isDry) {
    throw new Error(
      `a ${open.isDry ? 'dry ' : ''}${open.kind} that began ${state.detail.startedAt} is not finished (${state.phase}): ` +
        'run the same command again to continue it, or give it up with pledgeview rebuild drop',
    )
  }
  const detail = { ...state.detail, request: { ...open, acceptsLoss, ignoresDisk }, failure: null }
  if (isGone && request.kind === 'rollback') {
    throw new Error(
      'the previous tables were dropped, or are not in the backup that was restored: give the rollback up with pledgeview rebuild drop',
    )
  }
  if (!isGone && !isOutdated(state, from)) return { ...state, detail }
  const anew = { program: programVersion, records: 0, rejects: 0, isFolded: false }
  return { ...state, generation: 0, phase: 'preparing', detail: { ...detail, ...anew } }
}

/**
 * Whether an open rebuild has to begin again, with another generation. Another version of the program may have other rules. A ledger of
 * two versions would pass every check. And after a long interruption, deletions from that time may be gone from the log. One that was
 * promoted only has to be finished.
 */
function isOutdated({ generation, detail, ageMs }: RebuildState, from: number): boolean {
  const isOld = detail.program !== programVersion || ageMs > resumeMsMax
  return isOld && detail.request.kind === 'rebuild' && generation !== from
}

async function newRebuild(
  { generationLog, from, now, run, ...place }: BeginDependencies,
  request: RebuildRequest,
  latest: RebuildState | undefined,
): Promise<RebuildState> {
  if (request.kind === 'rollback' && request.isDry) throw new Error('a rollback has no dry run')
  const kept = keptGeneration(await readGenerations(generationLog))
  if (kept !== undefined && (await withDatabases(place, [kept])).length === 0) {
    throw new Error(
      'the previous tables are not in the backup that was restored: give them up with pledgeview rebuild drop',
    )
  }
  if (request.kind === 'rebuild' && kept !== undefined) {
    const name = latest ? keptTables(latest) : 'the previous tables'
    throw new Error(
      `${name} are still kept: drop them with pledgeview rebuild drop, or return to them with pledgeview rebuild rollback`,
    )
  }
  if (request.kind === 'rollback' && kept === undefined) {
    throw new Error('there are no previous tables to return to')
  }
  if (request.kind === 'rebuild' && !request.ignoresDisk) {
    for (const server of serversOf(place, from)) await checkDisk(server)
  }
  const at = new Date(now()).toISOString()
  return {
    id: at.replace(/\D/g, '').slice(0, 17),
    attempt: 0,
    generation: kept ?? 0,
    run,
    phase: 'preparing',
    writtenAt: '',
    ageMs: 0,
    detail: {
      request,
      startedAt: at,
      phaseMs: {},
      progress: null,
      records: 0,
      rejects: 0,
      differences: null,
      isFolded: request.kind === 'rollback',
      program: programVersion,
      failure: null,
    },
  }
}

/** Drops the generations that were never current, except for the one that goes on, and what a drop that was killed has left. */
async function dropLeftovers(
  { generationLog, run, ...place }: BeginDependencies,
  attempt: number,
  open: RebuildState | undefined,
): Promise<void> {
  for (const { number, isDropped, currentAt } of await readGenerations(generationLog)) {
    if (number === open?.generation) continue
    if (isDropped) await dropDatabases(place, number)
    else if (currentAt === null) await dropGeneration({ ...place, generationLog, run }, attempt, number)
  }
}

/** Before its databases are made, so that none is ever unknown. */
async function registerNext({ generationLog, run }: BeginDependencies, attempt: number): Promise<number> {
  const last = (await readGenerations(generationLog)).at(-1)
  const generation = (last?.number ?? 0) + 1
  await writeRow(generationLog, { kind: 'registered', generation, attempt, run })
  return generation
}

/* Checks whether the disk has room for a second set of tables. */

// The history has every version of an entity, not only the latest. Merges write their result before they drop their input.
const growth = 3

/** Throws if the disk has no room for a second set of tables, with the figures. `databases`: those of the current generation. */
export async function checkDisk({ tables, databases: { ledger, read } }: Shard): Promise<void> {
  const [row] = await tables.rows<{ liveBytes: number; freeBytes: number; disk: string }>({
    // The server may have other disks, such as one for backups.
    query: `WITH parts AS (SELECT disk_name, bytes_on_disk FROM system.parts WHERE active AND database IN {databases:Array(String)})
            SELECT (SELECT sum(bytes_on_disk) FROM parts) AS liveBytes, min(free_space) AS freeBytes, argMin(name, free_space) AS disk
            FROM system.disks WHERE name IN (SELECT disk_name FROM parts)`,
    query_params: { databases: [ledger, read] },
  })
  const { liveBytes, freeBytes, disk } = row ?? { liveBytes: 0, freeBytes: 0, disk: '' }
  if (freeBytes >= growth * liveBytes) return
  throw new Error(
    `a rebuild may need ${megabytes(growth * liveBytes)} in addition to the ${megabytes(liveBytes)} of the live tables, but only ` +
      `${megabytes(freeBytes)} are free on ClickHouse's disk ${disk}; free some of it, or begin anyway with --ignore-disk`,
  )
}
