/**
 * A client of the API: single requests, and a copy of the public campaigns that is kept up to date.
 *
 * It needs nothing but fetch: any runtime, once its types are stripped, as Node does by itself from 22.18 on. It retries what may end otherwise the next
 * time, waits where the rate limit asks for it, and does not ask again for what the cache period says cannot have changed.
 *
 *     const client = createClient({ baseUrl: 'https://api.example/api/v1', key, secret })
 *     for await (const change of client.mirror({ store })) {
 *       if (change.type === 'upsert') await put(change.project)
 *       else await drop(change.id)
 *     }
 */
import { createAnswers } from './client/answers.ts'
import { ClientError } from './client/errors.ts'
import type {
  Abortable,
  ClientOptions,
  ListAnswer,
  ListOptions,
  MirrorOptions,
  ReconcileOptions,
  WalkOptions,
} from './client/options.ts'
import { bodyOf, type Filter, listPath, momentOf, pageOf, unexpected } from './client/pages.ts'
import { createReported } from './client/reported.ts'
import { defaultSurroundings, type Surroundings } from './client/surroundings.ts'
import {
  type Change,
  compare,
  follow,
  type SyncDependencies,
  setOf,
  type WatermarkStore,
  watermarkOf,
} from './client/sync.ts'
import { createTransport } from './client/transport.ts'
import { walk } from './client/walk.ts'
import { limitMax } from './parameters.ts'
import type { ProjectDetail, ProjectListBody, Stats } from './schemas.ts'

export { ClientError, type ClientErrorCode } from './client/errors.ts'
export type {
  Abortable,
  ClientOptions,
  ListAnswer,
  ListOptions,
  MirrorOptions,
  ReconcileOptions,
  WalkOptions,
} from './client/options.ts'
export type { Filter } from './client/pages.ts'
export type { Surroundings } from './client/surroundings.ts'
export type { Change, Ids, WatermarkStore } from './client/sync.ts'
export type { Project, ProjectDetail, ProjectListBody, Reward, Stats } from './schemas.ts'

/** Every promise rejects with `ClientError` or with the reason of the signal. */
export interface Client {
  /** `GET /projects`. Rejects with `filtered_delta` where a filter and `updatedSince` are given together. */
  list(options?: ListOptions): Promise<ListAnswer>
  /** `GET /projects/{slug}`. Rejects with `not_found` where no public campaign has this slug. */
  detail(slug: string, options?: Abortable): Promise<ProjectDetail>
  /** `GET /stats`. */
  stats(options?: Abortable): Promise<Stats>
  /**
   * Every change of the public campaigns, for ever: first all of them (or, where the store has a watermark, what has
   * changed since), then what changes. No change is missed, whatever moves between pages; the last state of a campaign
   * always comes last. A campaign that leaves the public leaves no trace in a poll: `reconcile` tells of it.
   *
   * What was handed out counts as taken when the next change is asked for, and the watermark is saved when all of a
   * walk is taken: a consumer that is killed and starts again is told some changes twice, and misses none.
   *
   * Throws `filtered_delta` for a filter without leave, and `RangeError` for an option out of its bounds.
   */
  mirror(options?: MirrorOptions): AsyncGenerator<Change, never>
  /**
   * Walks everything once: an upsert for each public campaign, then a removal for each held one that is gone. Certain of
   * each removal: see `compare`. Not beside a mirror into the same copy, over whose news it would put pages that are up
   * to a cache period old: give the mirror its `reconcile` instead, or end it first. A shared store is refused
   * (`store_in_use`).
   */
  reconcile(options: ReconcileOptions): AsyncGenerator<Change, void>
}

const dayMs = 86_400_000

/** Makes a client. Nothing is sent before the first call. Throws `RangeError` where an option can never be right. */
export function createClient(options: ClientOptions): Client {
  checkCredentials(options)
  const surroundings: Surroundings = { ...defaultSurroundings, ...options.surroundings }
  const { now, sleep } = surroundings
  const transport = createTransport(
    { attemptMsMax: 30_000, attemptsMax: 6, retryMsMax: 180_000, ...options },
    surroundings,
  )
  const answers = createAnswers(transport, now)
  const storesInUse = new WeakSet<WatermarkStore>()

  async function data<T>(path: string, signal: AbortSignal | undefined): Promise<T> {
    const { data } = bodyOf<{ data: T }>((await answers.get(path, signal)).text)
    if (data === undefined) throw unexpected('a body without data')
    return data
  }

  function syncDependencies(options: WalkOptions, acrossWalks: boolean): SyncDependencies {
    const { pageSize = limitMax, status = null, category = null, signal } = options
    checkRange('pageSize', pageSize, 1, limitMax)
    return {
      now,
      sleep,
      signal,
      reported: createReported(acrossWalks),
      walk: updatedSince =>
        walk(
          {
            pageSize,
            async readPage(range) {
              const path = listPath({ ...range, status, category })
              return pageOf(await transport.get(path, { signal }), now())
            },
          },
          updatedSince,
        ),
    }
  }

  /** From a watermark beyond every change, nothing would ever come; clocks differ by less than a day. */
  function checkPast(since: number): void {
    if (since <= now() + dayMs) return
    const message = 'the stored watermark lies in the future'
    throw new ClientError({ code: 'invalid_parameter', message })
  }

  async function* withStore<End>(
    store: WatermarkStore,
    work: () => AsyncGenerator<Change, End>,
  ): AsyncGenerator<Change, End> {
    if (storesInUse.has(store)) {
      throw new ClientError({
        code: 'store_in_use',
        message: 'another iteration keeps its place in this store',
      })
    }
    storesInUse.add(store)
    try {
      return yield* work()
    } finally {
      storesInUse.delete(store)
    }
  }

  return {
    async list({ signal, updatedSince = null, allowFilteredDelta, ...parameters } = {}) {
      if (updatedSince !== null) checkFilter(parameters, allowFilteredDelta)
      const since = updatedSince === null ? null : momentOf(updatedSince, 'updatedSince')
      const { headers, text } = await answers.get(listPath({ ...parameters, updatedSince: since }), signal)
      const { data, pagination } = bodyOf<ProjectListBody>(text)
      if (data === undefined || pagination === undefined)
        throw unexpected('a list without data or pagination')
      return { data, pagination, asOf: headers.get('x-data-as-of') }
    },

    detail: (slug, { signal } = {}) => data<ProjectDetail>(`/projects/${encodeURIComponent(slug)}`, signal),

    stats: ({ signal } = {}) => data<Stats>('/stats', signal),

    mirror(options = {}) {
      const { store = nowhere(), intervalMs = 60_000, reconcile, onOutage } = options
      checkFilter(options, options.allowFilteredDelta)
      checkRange('intervalMs', intervalMs, 1000, Infinity)
      if (reconcile) checkRange('reconcile.everyMs', reconcile.everyMs, intervalMs, Infinity)
      const dependencies = syncDependencies(options, !options.reportRepeats)
      return withStore(store, async function* () {
        // A store may have nothing as a map has nothing.
        const stored = (await store.load()) ?? null
        const since = stored === null ? null : momentOf(stored, 'the stored watermark')
        if (since !== null) checkPast(since)
        return yield* follow(dependencies, {
          since,
          save: watermark => store.save(watermark),
          intervalMs,
          reconcile,
          onOutage,
        })
      })
    },

    reconcile(options) {
      const { held, store = nowhere() } = options
      const dependencies = syncDependencies(options, true)
      return withStore(store, async function* () {
        const end = yield* compare(dependencies, await setOf(held))
        await store.save(watermarkOf(end))
      })
    },
  }
}

function nowhere(): WatermarkStore {
  return { load: () => null, save: () => {} }
}

function checkFilter({ status, category }: Filter, allowFilteredDelta = false): void {
  if (allowFilteredDelta || ((status ?? null) === null && (category ?? null) === null)) return
  throw new ClientError({
    code: 'filtered_delta',
    message:
      'with a filter, what has changed since does not tell of a campaign that has left the filter: with status=LIVE ' +
      'one that has become FUNDED does not come, and stays LIVE in the copy. Leave the filter out, and filter what ' +
      'comes; or set allowFilteredDelta',
  })
}

/** What no request can be made of would otherwise look like a network that fails. */
function checkCredentials({ baseUrl, key, secret }: ClientOptions): void {
  if (!/^https?:\/\/[^\s/]/.test(baseUrl)) throw new RangeError('baseUrl must be an http or https address')
  for (const [name, value] of Object.entries({ key, secret })) {
    if (!/^[\x20-\x7e]+$/.test(value)) throw new RangeError(`${name} must be printable ASCII characters`)
  }
}

function checkRange(name: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max && (Number.isInteger(value) || value === Infinity)) return
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}`)
}
