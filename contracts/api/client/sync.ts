/**
 * Keeping a copy of the public campaigns: walks that follow one another, each from the watermark of the one before.
 *
 * What a walk has handed out counts as taken when the consumer asks for what comes next; only when all of a walk is taken is its
 * watermark saved. So a consumer that ends anywhere, and begins again, is told some things twice and misses none.
 */
import type { Project } from '../schemas.ts'
import { ClientError, isTransient } from './errors.ts'
import type { Reported } from './reported.ts'
import type { Surroundings } from './surroundings.ts'
import type { WalkEnd } from './walk-reader.ts'

/** What to do to the copy, in the order in which it comes. */
export type Change =
  /** Put this campaign in the place of what is held under its id. */
  | { type: 'upsert'; project: Project }
  /** The campaign is not public any more (or does not match the filter any more): drop it. */
  | { type: 'removed'; id: string }

/** Where a consumer keeps its place. One store belongs to one consumer and one filter. */
export interface WatermarkStore {
  /** What `save` was last given; null when it never was. */
  load(): Promise<string | null> | string | null
  /** Keeps an ISO 8601 timestamp, best together with the changes that came before it. */
  save(watermark: string): Promise<void> | void
}

/** Ids of campaigns that the consumer holds. */
export type Ids = Iterable<string> | AsyncIterable<string>

export interface SyncDependencies extends Pick<Surroundings, 'now' | 'sleep'> {
  /** Walks what has changed since, in Unix milliseconds, or everything (null). */
  walk(updatedSince: number | null): AsyncGenerator<Project[], WalkEnd>
  reported: Reported
  signal: AbortSignal | undefined
}

export interface FollowOptions {
  /** The watermark to begin with, in Unix milliseconds; null: with a walk of everything. */
  since: number | null
  save(watermark: string): Promise<void> | void
  intervalMs: number
  reconcile: { everyMs: number; held: () => Ids } | undefined
  onOutage: ((error: ClientError) => void) | undefined
}

/** Yields changes for ever. Rejects with `ClientError`, the signal's reason, or what store and callbacks throw. */
export async function* follow(
  dependencies: SyncDependencies,
  options: FollowOptions,
): AsyncGenerator<Change, never> {
  const { now, sleep, signal } = dependencies
  const { save, intervalMs, reconcile, onOutage } = options
  let { since } = options
  let reconciledAt = now()
  for (;;) {
    const startedAt = now()
    let nextAt = startedAt + intervalMs
    const isReconciling = since === null || (reconcile && startedAt - reconciledAt >= reconcile.everyMs)
    try {
      const end: WalkEnd = yield* isReconciling
        ? compare(dependencies, await setOf(reconcile?.held() ?? []))
        : upserts(dependencies, since)
      await save(watermarkOf(end))
      if (isReconciling) reconciledAt = startedAt
      // The same query would only bring the same answer.
      if (end.asOf === since) nextAt = Math.max(nextAt, end.freshUntil)
      since = end.asOf
    } catch (error) {
      if (!onOutage || !isTransient(error)) throw error
      onOutage(error)
    }
    await sleep(Math.max(0, nextAt - now()), signal)
  }
}

const roundsMax = 10
// An age is in whole seconds, rounded up, and a page takes it for a second more: a snapshot that was taken when it was asked
// for may be taken for as old as this.
const newMsMax = 2000

/**
 * Walks everything; then yields which of the held campaigns are gone. Of what was not met it is certain only after a
 * walk of the changes that is in one snapshot, and that one taken after the ids were: whatever is public in it was met
 * before if it had not changed, and is met now if it had.
 */
export async function* compare(
  dependencies: SyncDependencies,
  held: ReadonlySet<string>,
): AsyncGenerator<Change, WalkEnd> {
  const { now, sleep, reported, signal } = dependencies
  const startedAt = now()
  const missing = new Set(held)
  reported.forgetAll()
  let since: number | null = null
  for (let round = 0; round < roundsMax; round++) {
    const end: WalkEnd = yield* upserts(dependencies, since, missing)
    if (missing.size === 0 || (end.isOneSnapshot && end.takenAt >= startedAt)) {
      for (const id of missing) yield { type: 'removed', id }
      return end
    }
    await sleep(Math.max(0, startedAt + newMsMax - now()), signal)
    // Some moments earlier: else this would be the next poll of whoever polled before, and all its answers are kept still.
    since = end.asOf - 1 - round
  }
  const message = `no walk of the changes was within one new snapshot, ${roundsMax} times`
  throw new ClientError({ code: 'unstable_walk', message })
}

async function* upserts(
  { walk, reported }: SyncDependencies,
  since: number | null,
  missing?: Set<string>,
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
      if (reported.isNews(project)) yield { type: 'upsert', project }
    }
  }
}

/** The text of a walk's watermark. */
export function watermarkOf({ asOf }: WalkEnd): string {
  return new Date(asOf).toISOString()
}

/** The ids, collected. */
export async function setOf(ids: Ids): Promise<Set<string>> {
  const set = new Set<string>()
  for await (const id of ids) set.add(id)
  return set
}
