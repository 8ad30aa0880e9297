/**
 * A client of the API: single requests, and a mirror of the public campaigns that stays up to date.
 *
 * It needs only fetch, so it runs in Node and in browsers. `npm run client:pack` builds it as a package. It retries
 * requests that may succeed later, waits when the rate limit requires it, and does not repeat a request within the cache
 * period.
 *
 *     const client = createClient({ baseUrl: 'https://api.example/api/v1', key, secret })
 *     for await (const change of client.mirror({ store })) {
 *       if (change.type === 'upsert') await put(change.project)
 *       else await drop(change.id)
 *     }
 */
import { createAnswers } from './client/answers.ts'
import type { ProjectDetail, ProjectListBody, Stats } from './client/bodies.ts'
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
import { bodyOf, listIn, listPath, momentOf, pageOf, unexpected } from './client/pages.ts'
import { readRemovals } from './client/removals.ts'
import { createReported } from './client/reported.ts'
import { defaultRuntime, type Runtime } from './client/runtime.ts'
import { type Change, compare, follow, setOf, type WatermarkStore, watermarkOf } from './client/sync.ts'
import { createTransport } from './client/transport.ts'
import { type Verdict, type VerifyDependencies, type VerifyOptions, verify } from './client/verify.ts'
import { walk } from './client/walk.ts'
import type { PageRange } from './client/walk-reader.ts'
import { openWholeCopy, type WholeCopy } from './client/whole-copy.ts'
import { limitMax } from './parameters.ts'

export type { Project, ProjectDetail, ProjectListBody, Removal, Reward, Stats } from './client/bodies.ts'
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
export type { Runtime } from './client/runtime.ts'
export type { Change, Ids, WatermarkStore } from './client/sync.ts'
export type { Held, Verdict, VerifyOptions } from './client/verify.ts'
export { readWholeCopy, type WholeCopy } from './client/whole-copy.ts'

/** Every promise rejects with `ClientError` or with the reason of the abort signal. */
export interface Client {
  /** `GET /projects`. */
  list(options?: ListOptions): Promise<ListAnswer>
  /** `GET /projects/{slug}`. Rejects with `not_found` if no public campaign has this slug. */
  detail(slug: string, options?: Abortable): Promise<ProjectDetail>
  /** `GET /stats`. */
  stats(options?: Abortable): Promise<Stats>
  /**
   * The latest whole copy: every public campaign with its texts and rewards, as of one moment; null if the service offers none. The campaigns are
   * read while you iterate over them, and the service ends a download after half an hour, or five minutes without reading: if you take longer,
   * store the file first, and read it with `readWholeCopy`.
   */
  wholeCopy(options?: Abortable): Promise<WholeCopy | null>
  /**
   * Yields every change of the public campaigns, without end. It starts with all campaigns, or, if the store has a
   * watermark, with the changes since then. No change is missed, even if campaigns move between pages. The latest state
   * of a campaign always comes last. A campaign that is no longer public comes as a removal, also if the consumer never
   * had it. Set `reconcile` for a service that does not tell removals, or for a consumer that was away for longer than they
   * are kept.
   *
   * A change counts as processed when the consumer asks for the next one. The watermark is saved when a whole walk is
   * processed. So a consumer that is killed and starts again receives some changes twice, and misses none
   * (at-least-once).
   *
   * Throws `RangeError` for an invalid option.
   */
  mirror(options?: MirrorOptions): AsyncGenerator<Change, never>
  /**
   * Walks all pages once: it yields an upsert for each public campaign, then a removal for each held campaign that is
   * gone. Each removal is certain; see `compare`. Do not run it beside a mirror of the same copy: its pages may be one
   * cache period old, and would overwrite newer changes. Set the mirror's `reconcile` option instead, or end the mirror
   * first. A store that is in use is refused (`store_in_use`).
   */
  reconcile(options: ReconcileOptions): AsyncGenerator<Change, void>
  /**
   * Proves that a copy is equal to the public campaigns, by their digest, or repairs it and tells what was wrong. If the copy is right, this
   * takes one request. It polls first, so it puts later changes into the copy, too. As `reconcile`, it must not run beside a mirror of
   * the same copy.
   */
  verify(options: VerifyOptions): Promise<Verdict>
}

const dayMs = 86_400_000

/**
 * Creates a client. It sends nothing before the first call. Throws `RangeError` for an option that can never be valid.
 */
export function createClient(options: ClientOptions): Client {
  checkBaseUrl(options.baseUrl)
  checkCredentials(options)
  const runtime: Runtime = { ...defaultRuntime, ...options.runtime }
  const { now, sleep } = runtime
  const transport = createTransport(
    { attemptMsMax: 30_000, attemptsMax: 6, retryMsMax: 180_000, ...options },
    runtime,
  )
  const answers = createAnswers(transport, now)
  const withStore = createStoreGuard()

  async function data<T>(path: string, signal: AbortSignal | undefined): Promise<T> {
    const { data } = bodyOf<{ data: T }>((await answers.get(path, signal)).text)
    if (data === undefined) throw unexpected('a body without data')
    return data
  }

  function syncDependencies(options: WalkOptions): VerifyDependencies {
    const { pageSize = limitMax, signal } = options
    checkRange('pageSize', pageSize, 1, limitMax)
    async function readPage(range: PageRange) {
      return pageOf(await transport.get(listPath(range), { signal }), now())
    }
    return {
      now,
      sleep,
      signal,
      reported: createReported(),
      removals: since => readRemovals(transport, since, signal),
      firstPage: () => readPage({ offset: 0, limit: 1, updatedSince: null }),
      walk: updatedSince => walk({ pageSize, now, sleep, signal, readPage }, updatedSince),
    }
  }

  return {
    async list({ signal, updatedSince = null, ...parameters } = {}) {
      const since = updatedSince === null ? null : momentOf(updatedSince, 'updatedSince')
      const { headers, text } = await answers.get(listPath({ ...parameters, updatedSince: since }), signal)
      const { data, pagination } = listIn<ProjectListBody>(text, 'a list')
      const [asOf, snapshotId] = [headers.get('x-data-as-of'), headers.get('x-snapshot-id')]
      return { data, pagination, asOf, snapshotId }
    },

    async detail(slug, { signal } = {}) {
      // As the last part of a path, these lead to another resource.
      if (slug === '.' || slug === '..')
        throw new ClientError({ code: 'not_found', message: `no public campaign has the slug ${slug}` })
      return data<ProjectDetail>(`/projects/${encodeURIComponent(slug)}`, signal)
    },

    stats: ({ signal } = {}) => data<Stats>('/stats', signal),

    wholeCopy: ({ signal } = {}) => openWholeCopy(transport, signal),

    mirror(options = {}) {
      const { store = noStore(), from, intervalMs = 60_000, reconcile, onOutage } = options
      checkRange('intervalMs', intervalMs, 1000, Infinity)
      if (reconcile) checkRange('reconcile.everyMs', reconcile.everyMs ?? dayMs, intervalMs, Infinity)
      const dependencies = syncDependencies(options)
      return withStore(store, async function* () {
        const since = await startOf(store, now())
        return yield* follow(dependencies, {
          since,
          from,
          save: watermark => store.save(watermark),
          intervalMs,
          reconcile: reconcile && { everyMs: dayMs, ...reconcile },
          onOutage,
        })
      })
    },

    reconcile(options) {
      const { held, store = noStore() } = options
      const dependencies = syncDependencies(options)
      return withStore(store, async function* () {
        const end = yield* compare(dependencies, await setOf(held))
        await store.save(watermarkOf(end))
      })
    },

    async verify(options) {
      const { held, apply, store = noStore() } = options
      const dependencies = syncDependencies(options)
      const changes = withStore(store, async function* () {
        const since = await startOf(store, now())
        return yield* verify(dependencies, { held, since, save: watermark => store.save(watermark) })
      })
      try {
        for (;;) {
          const step = await changes.next()
          if (step.done) return step.value
          await apply(step.value)
        }
      } finally {
        await changes.return(undefined as never)
      }
    },
  }
}

function noStore(): WatermarkStore {
  return { load: () => null, save: () => {} }
}

type StoreGuard = <End>(
  store: WatermarkStore,
  work: () => AsyncGenerator<Change, End>,
) => AsyncGenerator<Change, End>

/** Refuses a store while another iteration of the same client uses it. */
function createStoreGuard(): StoreGuard {
  const storesInUse = new WeakSet<WatermarkStore>()
  return async function* (store, work) {
    if (storesInUse.has(store)) {
      throw new ClientError({ code: 'store_in_use', message: 'another iteration uses this watermark store' })
    }
    storesInUse.add(store)
    try {
      return yield* work()
    } finally {
      storesInUse.delete(store)
    }
  }
}

/** The watermark of a store. */
async function startOf(store: WatermarkStore, now: number): Promise<number | null> {
  // A store may return undefined, as a map does.
  const stored = (await store.load()) ?? null
  const since = stored === null ? null : momentOf(stored, 'the stored watermark')
  // Clocks differ by less than a day. From a watermark after every change, a mirror would never receive anything.
  if (since === null || since <= now + dayMs) return since
  const message =
    "the stored watermark is in the future by this computer's clock: check the clock, or the store"
  throw new ClientError({ code: 'invalid_parameter', message })
}

/** The text is not repeated in an error: it may contain a password. */
function checkBaseUrl(baseUrl: string): void {
  const isAddress = /^https?:\/\/[^\s/]/.test(baseUrl) && URL.canParse(baseUrl)
  if (!isAddress) throw new RangeError('baseUrl must be an http or https address')
  const { username, password, search, hash } = new URL(baseUrl)
  if (username || password) throw new RangeError('baseUrl must have no user name: use key and secret')
  if (search || hash) throw new RangeError('baseUrl must end with its path, without ? or #')
}

/** Without these checks, options that cannot form a request would look like a network failure. */
function checkCredentials({ key, secret }: ClientOptions): void {
  for (const [name, value] of Object.entries({ key, secret })) {
    if (!/^[\x20-\x7e]+$/.test(value)) throw new RangeError(`${name} must be printable ASCII characters`)
  }
}

function checkRange(name: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max && (Number.isInteger(value) || value === Infinity)) return
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}`)
}
