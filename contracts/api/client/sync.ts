/**
 * Keeps a copy of the public campaigns up to date: repeated walks, each from the watermark of the one before.
 *
 * A change counts as processed when the consumer asks for the next one. The watermark is saved when a whole walk is
 * processed; and before a walk, an earlier one, if an answer was older. So a consumer that stops anywhere and starts again receives some changes twice, and misses none.
 */
import type { Project, ProjectDetail } from './bodies.ts'
import { ClientError, isTransient } from './errors.ts'
import { momentOf, newMsMax } from './pages.ts'
import type { Removals } from './removals.ts'
import type { Reported } from './reported.ts'
import { msUntil, type Runtime } from './runtime.ts'
import type { WalkEnd } from './walk-reader.ts'
import type { WholeCopy } from './whole-copy.ts'

/** A change to apply to the copy, in the order received. */
export type Change =
  /**
   * Insert this campaign, or replace the one with the same id. From a whole copy it has its texts and rewards. Otherwise it has the fields of a list:
   * then read the detail if you keep more.
   */
  | { type: 'upsert'; project: Project | ProjectDetail }
  /** The campaign is no longer public: delete it. */
  | { type: 'removed'; id: string }

/** Stores the watermark of a consumer. One store belongs to one consumer. */
export interface WatermarkStore {
  /** Returns the last saved watermark; null if there is none. */
  load(): Promise<string | null> | string | null
  /** Saves an ISO 8601 timestamp, best in one transaction with the changes before it. */
  save(watermark: string): Promise<void> | void
}

/** The ids of the campaigns that the consumer holds. */
export type Ids = Iterable<string> | AsyncIterable<string>

export interface SyncDependencies extends Pick<Runtime, 'now' | 'sleep'> {
  /** Walks the campaigns that changed since this moment (Unix milliseconds), or all campaigns (null). */
  walk(updatedSince: number | null): AsyncGenerator<Project[], WalkEnd>
  /** What left since this moment, or everything that is kept (null). Null if the service does not tell. */
  removals(since: number | null): Promise<Removals | null>
  reported: Reported
  signal: AbortSignal | undefined
}

export interface FollowOptions {
  /** The watermark to start from, in Unix milliseconds; null: start with a walk of all campaigns. */
  since: number | null
  /** What to start with in place of that walk, if there is one. */
  from: (() => Promise<WholeCopy | null> | WholeCopy | null) | undefined
  save(watermark: string): Promise<void> | void
  intervalMs: number
  reconcile: { everyMs: number; held: () => Ids } | undefined
  onOutage: ((error: ClientError) => void) | undefined
}

/**
 * Yields changes without end. What is gone comes from the list of removals. Only if the service does not tell it, or not from so long ago,
 * all campaigns are walked and compared.
 *
 * The first poll after a start, or after the first walk, asks for all removals that are kept: a walk that failed may have brought a campaign
 * that left before the next one, and an earlier version of this client did not ask.
 *
 * Rejects with `ClientError`, the signal's reason, or an error of the store or a callback.
 */
export async function* follow(
  dependencies: SyncDependencies,
  options: FollowOptions,
): AsyncGenerator<Change, never> {
  const { now, sleep, removals, signal } = dependencies
  const { from, save, intervalMs, reconcile, onOutage } = options
  let { since } = options
  let removedSince: number | null = null
  // What left before this moment is gone from the copy, by removals or by a comparison.
  let toldUntil = since
  // When the next comparison is due if no removals are told. A store does not say when the last one was. One poll comes first, so that a mirror
  // that is restarted often receives changes.
  let reconcileAt = now() + intervalMs
  for (;;) {
    const startedAt = now()
    // A clock that was set back must not put the comparison off.
    reconcileAt = Math.min(reconcileAt, startedAt + (reconcile?.everyMs ?? Infinity))
    let nextAt = startedAt + intervalMs
    try {
      const gone = since === null ? null : await removals(removedSince)
      if (since !== null && gone !== null && gone.asOf < since) {
        // A cached answer may say that a campaign is gone which has come back since. The walk that brings it again, now or after a
        // failure, has to begin at the answer's moment.
        since = gone.asOf
        await save(watermarkOf({ asOf: since }))
      }
      const isUntold = gone === null ? startedAt >= reconcileAt : gone.keptSince > Number(toldUntil)
      const isReconciling = since === null || (reconcile !== undefined && isUntold)
      const copy = since === null ? ((await from?.()) ?? null) : null
      const end: WalkEnd = yield* isReconciling
        ? compare(dependencies, await setOf(reconcile?.held() ?? []), copy)
        : changes(dependencies, since, gone)
      await save(watermarkOf(end))
      // A copy may be a day old.
      if (copy !== null) nextAt = startedAt
      if (isReconciling || gone !== null) {
        toldUntil = end.asOf
        reconcileAt = startedAt + (reconcile?.everyMs ?? Infinity)
      }
      if (!isReconciling && gone !== null) removedSince = end.asOf
      // The same query would return the same response.
      if (end.asOf === since) nextAt = Math.max(nextAt, end.freshUntil)
      since = end.asOf
    } catch (error) {
      if (!onOutage || !isTransient(error)) throw error
      onOutage(error)
    }
    await sleep(msUntil(nextAt, now(), nextAt - startedAt), signal)
  }
}

const roundsMax = 10

/**
 * Walks all campaigns, or reads a whole copy of them, then yields a removal for each held campaign that is gone.
 *
 * A campaign that was not seen is certainly gone only after a walk of the changes that stayed within one snapshot,
 * taken after the ids were collected. A campaign that is public in that snapshot was seen before if it had not changed,
 * and is seen now if it had.
 */
export async function* compare(
  dependencies: SyncDependencies,
  held: ReadonlySet<string>,
  copy: WholeCopy | null = null,
): AsyncGenerator<Change, WalkEnd> {
  const { now, sleep, reported, signal } = dependencies
  const startedAt = now()
  const missing = new Set(held)
  // What was seen in an earlier round may have left since then.
  let asOf = Infinity
  reported.forgetAll()
  let since: number | null = null
  for (let round = 0; round < roundsMax; round++) {
    const end: WalkEnd = yield* copy !== null && round === 0
      ? copied(dependencies, copy, missing)
      : upserts(dependencies, since, { missing })
    asOf = Math.min(asOf, end.asOf)
    if (missing.size === 0 || (end.isOneSnapshot && end.takenAt >= startedAt)) {
      for (const id of missing) yield { type: 'removed', id }
      return { ...end, asOf }
    }
    await sleep(msUntil(startedAt + newMsMax, now(), newMsMax), signal)
    // Ask for a slightly earlier moment. Otherwise this could equal an earlier poll, whose responses are still cached.
    since = end.asOf - 1 - round
  }
  const message = `in ${roundsMax} attempts, no walk of the changes stayed within one new snapshot`
  throw new ClientError({ code: 'unstable_walk', message })
}

/** The removals, and then what has changed. Of two states of a campaign, the later one counts: each may come from an older answer. */
async function* changes(
  dependencies: SyncDependencies,
  since: number | null,
  gone: Removals | null,
): AsyncGenerator<Change, WalkEnd> {
  const left = new Map<string, string>()
  for (const removal of gone?.removals ?? []) {
    left.set(removal.id, removal.updated_at)
    if (dependencies.reported.isNews(removal)) yield { type: 'removed', id: removal.id }
  }
  const end = yield* upserts(dependencies, since, { left })
  return { ...end, asOf: Math.min(end.asOf, gone?.asOf ?? Infinity) }
}

/** It has every change up to its `asOf`, and perhaps later ones, as a walk has. */
async function* copied(
  { reported, signal }: SyncDependencies,
  { asOf, projects }: WholeCopy,
  missing: Set<string>,
): AsyncGenerator<Change, WalkEnd> {
  try {
    for await (const project of projects) {
      signal?.throwIfAborted()
      missing.delete(project.id)
      reported.isNews(project)
      yield { type: 'upsert', project }
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  }
  reported.endWalk()
  return {
    asOf: momentOf(asOf, 'asOf of the whole copy'),
    isOneSnapshot: false,
    digest: null,
    takenAt: -Infinity,
    freshUntil: 0,
  }
}

async function* upserts(
  { walk, reported }: SyncDependencies,
  since: number | null,
  { missing, left }: { missing?: Set<string>; left?: ReadonlyMap<string, string> },
): AsyncGenerator<Change, WalkEnd> {
  const pages = walk(since)
  for (;;) {
    const step = await pages.next()
    if (step.done) {
      reported.endWalk()
      return step.value
    }
    for (const project of step.value) {
      missing?.delete(project.id)
      if (project.updated_at < (left?.get(project.id) ?? '')) continue
      if (reported.isNews(project)) yield { type: 'upsert', project }
    }
  }
}

/** The watermark of a walk as text. */
export function watermarkOf({ asOf }: Pick<WalkEnd, 'asOf'>): string {
  return new Date(asOf).toISOString()
}

/** Collects the ids into a set. */
export async function setOf(ids: Ids): Promise<Set<string>> {
  const set = new Set<string>()
  for await (const id of ids) set.add(id)
  return set
}
