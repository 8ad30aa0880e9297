/**
 * Proves that a copy is equal to the public campaigns, or repairs it.
 *
 * A poll brings what has changed since the copy's watermark. Its first page has the digest of all campaigns at that moment, so a right copy costs
 * one request. A campaign may change or leave between two answers of one poll: then the next poll decides. If the digests still differ,
 * all campaigns are walked and compared, and the copy is polled and compared again. If the digest does not come with the poll, it may be of an
 * earlier moment, so a difference proves nothing: then one walk decides.
 */

import { digestOf } from './digest.ts'
import { ClientError } from './errors.ts'
import type { Abortable, WalkOptions } from './options.ts'
import { newMsMax, type Page } from './pages.ts'
import { type Change, compare, type SyncDependencies, type WatermarkStore, watermarkOf } from './sync.ts'

/** A campaign of the copy. */
export interface Held {
  id: string
  /** As the API showed it. */
  updated_at: string
}

export interface VerifyOptions extends Abortable, Pick<WalkOptions, 'pageSize'> {
  /** What the copy holds. Called at the start, and again after each repair. */
  held: () => Iterable<Held> | AsyncIterable<Held>
  /** Puts a change into the copy. */
  apply: (change: Change) => Promise<void> | void
  /** The store of the copy's mirror. Without it every difference counts as wrong, also a change that the copy has yet to receive. */
  store?: WatermarkStore
}

/** The copy is equal to the public campaigns now. The ids are of campaigns that were wrong, and are repaired. */
export interface Verdict {
  /** ISO 8601: it contains every change up to this moment. */
  asOf: string
  /** Whether nothing was wrong. */
  wasEqual: boolean
  /** Public, and not in the copy. */
  lacking: string[]
  /** In the copy, and not public. */
  leftOver: string[]
  /** In the copy with another `updated_at`. */
  stale: string[]
}

export interface VerifyDependencies extends SyncDependencies {
  /** The first page of all campaigns. */
  firstPage(): Promise<Page>
}

// A campaign that leaves between two answers of a poll is found by the next one.
const pollsMax = 3
const walksMax = 3

/** `updated_at` by id. */
type Copy = Map<string, string>

/** Yields what to put into the copy. Rejects with `unstable_walk` if it still differs after several repairs. */
export async function* verify(
  dependencies: VerifyDependencies,
  {
    held,
    save,
    ...from
  }: Pick<VerifyOptions, 'held'> & Pick<WatermarkStore, 'save'> & { since: number | null },
): AsyncGenerator<Change, Verdict> {
  const wrong = noneWrong()
  let { since } = from
  /** A walk of all campaigns found nothing wrong. While campaigns change, a row may be newer than the digest of its list. */
  let isRight = false
  for (let walks = 0; ; walks++) {
    const copy = await copyOf(held())
    let isTold = true
    for (let polls = 0; polls < pollsMax; polls++) {
      const { asOf, digest, isEqual } = yield* caughtUp(dependencies, since, copy)
      if (isEqual || since !== null) await save(watermarkOf({ asOf }))
      if (isEqual) return verdict(asOf, wrong)
      isTold = digest !== null
      // The same request would get the same answer.
      if (since === null || since === asOf) break
      since = asOf
    }
    if (walks > 0 && (isRight || !isTold) && since !== null) return verdict(since, wrong)
    if (walks === walksMax) break
    const found = noneWrong()
    since = yield* repaired(dependencies, since, copy, found)
    isRight = kinds.every(kind => found[kind].size === 0)
    for (const kind of kinds) for (const id of found[kind]) wrong[kind].add(id)
    await save(watermarkOf({ asOf: since }))
  }
  const message = `the copy still differs after ${walksMax} repairs: check that apply changes what held returns`
  throw new ClientError({ code: 'unstable_walk', message })
}

async function copyOf(held: ReturnType<VerifyOptions['held']>): Promise<Copy> {
  const copy: Copy = new Map()
  for await (const { id, updated_at } of held) copy.set(id, updated_at)
  return copy
}

const kinds = ['lacking', 'leftOver', 'stale'] as const
type Wrong = Record<(typeof kinds)[number], Set<string>>

function noneWrong(): Wrong {
  return { lacking: new Set(), leftOver: new Set(), stale: new Set() }
}

function verdict(asOf: number, { lacking, leftOver, stale }: Wrong): Verdict {
  return {
    asOf: watermarkOf({ asOf }),
    wasEqual: lacking.size + leftOver.size + stale.size === 0,
    lacking: [...lacking],
    leftOver: [...leftOver],
    stale: [...stale],
  }
}

interface CaughtUp {
  asOf: number
  /** Null if the service does not tell it with this poll. */
  digest: string | null
  isEqual: boolean
}

/** One poll. The removals are read only if the changes alone do not make the copy equal. */
async function* caughtUp(
  { walk, removals, firstPage }: VerifyDependencies,
  since: number | null,
  copy: Copy,
): AsyncGenerator<Change, CaughtUp> {
  if (since === null) {
    const page = await firstPage()
    return compared(copy, page, page)
  }
  const pages = walk(since)
  let step = await pages.next()
  for (; !step.done; step = await pages.next()) {
    for (const project of step.value) {
      // It may come from an answer that is older than the copy.
      if (project.updated_at <= (copy.get(project.id) ?? '')) continue
      copy.set(project.id, project.updated_at)
      yield { type: 'upsert', project }
    }
  }
  const end = step.value
  // A service with very many campaigns has the digest only with the list of all, whose answer may be as old as the cache allows.
  const told = end.digest === null ? await firstPage() : end
  const changed = compared(copy, end, told)
  if (changed.isEqual) return changed
  const gone = await removals(since)
  for (const { id, updated_at } of gone?.removals ?? []) {
    if (updated_at <= (copy.get(id) ?? updated_at)) continue
    copy.delete(id)
    yield { type: 'removed', id }
  }
  return compared(copy, { ...end, asOf: Math.min(end.asOf, gone?.asOf ?? Infinity) }, told)
}

type Told = Pick<Page, 'asOf' | 'digest'>

/** `told` has the digest. */
function compared(copy: Copy, { asOf, digest }: Told, told: Told): CaughtUp {
  const isEqual = told.digest !== null && told.digest === digestOf(copy)
  return { asOf: isEqual ? Math.min(asOf, told.asOf) : asOf, digest, isEqual }
}

/**
 * Walks all campaigns, and yields what the copy has to change. What changed or left after the copy's watermark was not wrong.
 * Returns the watermark of the walk.
 */
async function* repaired(
  dependencies: VerifyDependencies,
  since: number | null,
  copy: Copy,
  wrong: Wrong,
): AsyncGenerator<Change, number> {
  // From then on no cached answer is older than the copy.
  const { lifetimeMs } = await dependencies.firstPage()
  await dependencies.sleep(lifetimeMs + newMsMax, dependencies.signal)
  const isOld = (stamp: string) => since === null || stamp < watermarkOf({ asOf: since })
  const changes = compare(dependencies, new Set(copy.keys()))
  let step = await changes.next()
  for (; !step.done; step = await changes.next()) {
    const change = step.value
    if (change.type === 'removed') wrong.leftOver.add(change.id)
    else {
      const { id, updated_at } = change.project
      const known = copy.get(id)
      if (known === updated_at) continue
      copy.set(id, updated_at)
      if (known === undefined && isOld(updated_at)) wrong.lacking.add(id)
      if (known !== undefined && (isOld(updated_at) || known > updated_at)) wrong.stale.add(id)
    }
    yield change
  }
  const later = since === null ? null : await dependencies.removals(since)
  for (const { id } of later?.removals ?? []) wrong.leftOver.delete(id)
  return step.value.asOf
}
