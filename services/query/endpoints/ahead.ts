/**
 * Keeps the answer of an endpoint without parameters ahead of the requests for it, if it is slow: the next answer is computed
 * before the cached one ends, so no request waits for the seconds that it takes. The first one is computed before the service listens.
 * These are the statistics of a large platform.
 *
 * Promises:
 * - an answer is never older than the cache period: an entry expires one period after it was computed, however late it is first
 *   served;
 * - processes that share a cache share the computation, if it takes no longer than the lock of the cache; of a longer one, several
 *   processes may each do their own. A process that starts computes once by itself;
 * - if a computation fails, it is tried again after a pause. Until one succeeds, requests compute, as without this module:
 *   while ClickHouse is away, they get what is cached, and then an error;
 * - `forgetAll` drops the answer and what is being computed, and starts again.
 *
 * An answer that is not slow is computed when it is asked for, so that the first one after a change is as new as it can be.
 */
import type { Runtime } from '../../runtime/runtime.ts'
import { leftMs } from '../cache/cache.ts'
import type { CacheEntry, ResponseCache } from '../cache/response-cache.ts'

export interface Computed {
  entry: CacheEntry
  /** Whether it has to be kept ahead. */
  isSlow: boolean
}

export type Ahead = ReturnType<typeof createAhead>

/** How an answer is computed. */
export interface AheadWork {
  /** For a request, within the time that a request may take. */
  compute: () => Promise<CacheEntry>
  /** Ahead of requests: it may take longer. */
  computeAhead: (signal: AbortSignal) => Promise<Computed>
  onError: (error: unknown) => void
}

// The service listens after that time, whatever has become of the first computation.
const startMsMax = 5_000
// A computation begins one to two leads before the entry expires: the process that begins first computes for all. The lead
// is a share of the period, and more than the last computation took: the next one should end before the entry does.
const leadShare = 1 / 20
const leadFactor = 1.5
const retryShare = 1 / 40
const pauseMsMin = 1_000
// A rest of nine times the computation bounds its share of a core, however short the period is.
const restFactor = 9

/** Creates an answer that is computed when it is asked for, until `run` is called. `key`: of the answer, in the response cache. */
export function createAhead(
  key: string,
  cache: Pick<ResponseCache, 'get'>,
  cacheMs: number,
  { compute, computeAhead, onError }: AheadWork,
  { now, monotonicMs, random, sleep }: Pick<Runtime, 'now' | 'monotonicMs' | 'random' | 'sleep'>,
) {
  const { promise: first, resolve: endFirst } = Promise.withResolvers<void>()
  let ahead: CacheEntry | undefined
  let computedMs = 0
  let forgotten = new AbortController()

  /** What was computed ahead, if it has not ended. Otherwise what a new computation returns. */
  async function load(): Promise<CacheEntry> {
    return ahead !== undefined && leftMs(ahead, now()) > 0 ? ahead : await compute()
  }

  async function timed(signal: AbortSignal): Promise<Computed> {
    const startedAt = monotonicMs()
    try {
      return await computeAhead(signal)
    } finally {
      computedMs = monotonicMs() - startedAt
    }
  }

  /** The entry that follows `current`; `undefined` if it is not slow. */
  async function next(current: CacheEntry | undefined, signal: AbortSignal): Promise<CacheEntry | undefined> {
    if (current === undefined) {
      const { entry, isSlow } = await timed(signal)
      return isSlow ? entry : undefined
    }
    // All processes have the same current entry, so they share the computation of the next one.
    return cache.get(`${key} after ${current.etag}`, async () => (await timed(signal)).entry)
  }

  /** Returns the entry that is cached from now on, and `undefined` if it is not slow. */
  async function round(
    current: CacheEntry | undefined,
    signal: AbortSignal,
  ): Promise<CacheEntry | undefined> {
    const following = await next(current, signal)
    // It may have begun before a purge.
    if (signal.aborted) return undefined
    ahead = following
    if (ahead === undefined) return undefined
    if (current !== undefined) await sleep(leftMs(current, now()), signal)
    return signal.aborted ? current : cache.get(key, load)
  }

  return {
    load,

    forgetOld(): void {
      if (ahead !== undefined && leftMs(ahead, now()) === 0) ahead = undefined
    },

    forgetAll(): void {
      ahead = undefined
      forgotten.abort()
    },

    /** Resolves once the first computation of `run` has ended, or after `startMsMax`. */
    async started(): Promise<void> {
      const timer = new AbortController()
      await Promise.race([first, sleep(startMsMax, timer.signal)])
      timer.abort()
    },

    /** Keeps the answer ahead until the signal aborts. It never rejects. Call it once. */
    async run(signal: AbortSignal): Promise<void> {
      let current: CacheEntry | undefined
      while (!signal.aborted) {
        if (forgotten.signal.aborted) {
          forgotten = new AbortController()
          current = undefined
        }
        const either = AbortSignal.any([signal, forgotten.signal])
        let restMs: number
        try {
          current = await round(current, either)
          const leadMs = Math.max(cacheMs * leadShare, computedMs * leadFactor) * (1 + random())
          restMs = (current ? leftMs(current, now()) : cacheMs) - leadMs
        } catch (error) {
          if (!either.aborted) onError(error)
          if (current !== undefined && leftMs(current, now()) === 0) current = undefined
          restMs = cacheMs * retryShare
        }
        if (either.aborted) continue
        endFirst()
        await sleep(Math.max(pauseMsMin, restMs, restFactor * computedMs), either)
      }
      endFirst()
    },
  }
}
