/**
 * Keeps a list index up to date with the tables: it loads the index once, and then adds the changes.
 *
 * Promise: the index that `current` returns holds every change up to its `asOf`, and nothing that was not in the tables. A
 * change that becomes visible later has a stamp at or after that moment, so a later refresh finds it. The tables are asked
 * at most twice per `freshMs`, however many requests arrive. While requests arrive, none of them waits for that: a refresh
 * starts at half of `freshMs`.
 *
 * A refresh reads a campaign only if the index has it with another `updated_at`, because the changes of the last
 * seconds are found by every refresh until the watermark has passed them. It never blocks the event loop for long: it reads
 * and adds the campaigns in parts. A list that is made between two parts may have changes after its watermark:
 * the next poll delivers them again.
 *
 * If the number of campaigns differs from the tables several times in a row, the index is loaded again. That finds what
 * left no change behind, for example when a table was restored. Until the index is loaded, and while there
 * are too many campaigns for it, there is no index and ClickHouse computes the lists.
 */

import { kept } from '../../runtime/async/kept.ts'
import { yieldToEventLoop } from '../../runtime/async/sleep.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { idChunks } from '../../tables/clickhouse/statements.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { forgetMs, keptMsMax } from '../forgetting.ts'
import { createListIndex, type ListIndex } from './list-index.ts'
import {
  type ChangedEntriesRow,
  type ChangesRow,
  campaignChangesStatement,
  changedEntriesStatement,
  type EntriesRow,
  nextEntriesStatement,
} from './list-statements.ts'

export interface ListFollowerOptions extends Partial<typeof defaults> {
  statementMsMax: number
  /** The index holds at most this many campaigns. 0: no index. */
  campaignsMax: number
}

const defaults = {
  /** The age at which the index is refreshed, ms. Clients rely on it (contracts/api/client/pages.ts). */
  freshMs: 1_000,
  /** Pause between two attempts to load, ms. */
  reloadMs: 30_000,
  /** Campaigns per statement during a load. */
  chunkRows: 10_000,
  /** How often the campaigns are counted, ms. Counting reads the whole table. */
  countMs: 5_000,
  /** If there are more changes than this at once, the whole index is loaded again. */
  changesMax: 50_000,
}

/** An index and its moment. */
export interface FollowedIndex {
  index: ListIndex
  /** ClickHouse's clock when the latest refresh began to read, Unix ms. */
  readAt: number
  /** The watermark of that refresh, Unix ms. */
  asOf: number
}

export type ListFollower = ReturnType<typeof createListFollower>

// The end of ClickHouse's time range: nothing has changed after it.
const never = Date.UTC(2299, 0)
// A new campaign may appear between counting and reading, so one difference means nothing.
const mismatchesMax = 5
// So many are read at once. ClickHouse bounds the length of a parameter: 128 KiB by default.
const idsAtOnce = 2_000
// An older index is not asked for slugs. A slug that has moved is noticed by the row that is read, at any age. But if two
// campaigns have the same slug, only an index that knows both can leave the choice to ClickHouse.
const slugMsMax = 10_000
// So many are added at once, in a few milliseconds: every change is searched for in the orders that it moves in.
const changedAtOnce = 128
const loadedAtOnce = 1_024

/** Creates a follower without an index. The first call of `current` starts to load one. `onError`: of what no caller waits for. */
export function createListFollower(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  given: ListFollowerOptions,
  onError: (error: unknown) => void,
  { monotonicMs: now }: Pick<Runtime, 'monotonicMs'>,
) {
  const options = { ...defaults, ...given }
  const { statementMsMax: msMax, campaignsMax, changesMax, chunkRows, freshMs } = options
  let followed: FollowedIndex | undefined
  let refreshedAt = Number.NEGATIVE_INFINITY
  let mismatches = 0
  let generation = ''
  let countedAt = Number.NEGATIVE_INFINITY

  async function singleRow<Row>(statement: Parameters<typeof tables.rows>[0]): Promise<Row> {
    const [row] = await tables.rows<Row>(statement)
    if (row === undefined) throw new Error('a statement of the list index returned no row')
    return row
  }

  const changesSince = (since: number, isCounted: boolean) =>
    singleRow<ChangesRow>(
      campaignChangesStatement(since, databases, { idsMax: changesMax + 1, isCounted, msMax }),
    )

  async function load(): Promise<void> {
    // A statement without changes returns the time and the size. A refresh then finds what changes during the load.
    const { read_at: readAt, as_of: asOf, total } = await changesSince(never, true)
    if (total === null || total > campaignsMax) return
    const index = createListIndex({ sizeExpected: total })
    for (let after = '', isDone = false; !isDone; ) {
      const entries = await singleRow<EntriesRow>(
        nextEntriesStatement(after, databases, { rowsMax: chunkRows, msMax }),
      )
      await inParts(entries, loadedAtOnce, part => index.put(part))
      after = entries.ids.at(-1) ?? after
      isDone = entries.ids.length < chunkRows
      if (index.size > campaignsMax) return
    }
    await index.prepare(yieldToEventLoop)
    followed = { index, readAt, asOf }
    await refreshOnce()
  }

  const startLoading = kept(() => load().catch(onError), { ms: options.reloadMs }, { monotonicMs: now })

  function discardAndReload(): void {
    followed = undefined
    mismatches = 0
    void startLoading()
  }

  async function refresh(): Promise<void> {
    if (followed === undefined) return
    const { index, asOf: since } = followed
    const askedAt = now()
    const isCounted = mismatches > 0 || askedAt - countedAt >= options.countMs
    const before = generation
    generation = databases.read
    const changes = await changesSince(since, isCounted)
    const { as_of: asOf, ids, stamps } = changes
    const isOne = before === generation && generation === databases.read
    invariant('index-watermark', !isOne || asOf >= since, () => ({ generation, before: since, asOf }))
    invariant('index-changes', ids.length === stamps.length)
    if (ids.length > changesMax) return discardAndReload()
    const total = await addChanged(index, await outdated(index, changes), changes.total)
    if (index.size > campaignsMax) return discardAndReload()
    if (total !== null) {
      countedAt = askedAt
      mismatches = index.size === total ? 0 : mismatches + 1
      if (mismatches === mismatchesMax) return discardAndReload()
    }
    followed = { index, readAt: changes.read_at, asOf: changes.as_of }
    refreshedAt = askedAt
  }

  /** Reads these campaigns into the index. Returns their number in the tables, counted again, unless `total` is null. */
  async function addChanged(
    index: ListIndex,
    ids: readonly string[],
    total: number | null,
  ): Promise<number | null> {
    let counted = total
    let from = 0
    for (const some of idChunks(ids, idsAtOnce)) {
      from += some.length
      const isCounted = total !== null && from === ids.length
      // This is read after the ids, so a campaign that is missing here is no longer public.
      const entries = await singleRow<ChangedEntriesRow>(
        changedEntriesStatement(some, databases, { isCounted, msMax }),
      )
      if (isCounted) counted = entries.total
      const present = new Set(entries.ids)
      const departed = some.filter(id => !present.has(id))
      await inParts(entries, changedAtOnce, part => index.put(part))
      await inParts({ ids: departed }, changedAtOnce, part => index.remove(part.ids))
    }
    return counted
  }

  /** One refresh at a time. Callers that arrive meanwhile wait for it. */
  const refreshOnce = kept(refresh)

  /** Without requests, nothing else refreshes the index. */
  const forgetDeparted = () => refreshOnce().catch(onError)

  return {
    /**
     * The index, not older than `freshMs`, with every change that a list as of `asOf` (Unix ms) has. Undefined if there
     * is no index yet, or if there are too many campaigns for one. Rejects with the error of ClickHouse.
     */
    async current(asOf = Number.NEGATIVE_INFINITY): Promise<FollowedIndex | undefined> {
      if (campaignsMax === 0) return undefined
      const ageMs = now() - refreshedAt
      if (followed === undefined) void startLoading()
      else if (ageMs >= freshMs || followed.asOf < asOf) await refreshOnce()
      // An error is thrown by the refresh that a caller has to wait for.
      else if (ageMs >= freshMs / 2) refreshOnce().catch(() => undefined)
      // A refresh that was running already may have started before the moment that is asked for.
      if (followed && followed.asOf < asOf) await refreshOnce()
      return followed && followed.asOf >= asOf ? followed : undefined
    },

    /**
     * The campaign that had this slug at most `slugMsMax` ago, without waiting: compare the slug of its row. Undefined if no
     * campaign or more than one may have it, or without an index that is new enough.
     */
    idOfSlug(slug: string): string | undefined {
      if (followed === undefined) return undefined
      const ageMs = now() - refreshedAt
      if (ageMs >= slugMsMax / 2) refreshOnce().catch(() => undefined)
      return ageMs < slugMsMax ? followed.index.idOfSlug(slug) : undefined
    },

    forgetOld(): void {
      // It may have campaigns that are gone. A refresh under way keeps it until its statement ends.
      if (now() - refreshedAt >= keptMsMax - msMax) followed = undefined
      else if (now() - refreshedAt >= forgetMs) void forgetDeparted()
    },

    forgetAll: forgetDeparted,
  }
}

/** The changed campaigns that the index does not have with this change. */
async function outdated(index: ListIndex, { ids, stamps }: ChangesRow): Promise<string[]> {
  const found: string[] = []
  for (const [at, id] of ids.entries()) {
    if (index.updatedAt(id) !== stamps[at]) found.push(id)
    if (at % idsAtOnce === idsAtOnce - 1) await yieldToEventLoop()
  }
  return found
}

/** Calls `add` with parts of these campaigns. Other work runs between the calls. */
async function inParts<Entries extends Pick<EntriesRow, 'ids'>>(
  entries: Entries,
  size: number,
  add: (part: Entries) => void,
): Promise<void> {
  for (let from = 0; from < entries.ids.length; from += size) {
    await yieldToEventLoop()
    const columns = Object.entries(entries).filter(([, values]) => Array.isArray(values))
    const part = columns.map(([name, values]) => [name, values.slice(from, from + size)])
    add(Object.fromEntries(part) as Entries)
  }
}
