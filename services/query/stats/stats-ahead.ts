/**
 * Keeps the statistics of a large platform ahead of the requests for them: the next answer is computed before the cached one
 * ends, so no request waits for the seconds that it takes. The first one is computed before the service listens.
 *
 * Promises:
 * - an answer is never older than the cache period: an entry expires one period after it was computed, however late it is first
 *   served;
 * - processes that share a cache share the computation, if it takes no longer than the lock of the cache; of a longer one, several
 *   processes may each do their own. A process that starts computes once by itself;
 * - if a computation fails, it is tried again after a pause. Until one succeeds, requests compute, as without this module:
 *   while ClickHouse is away, they get what is cached, and then an error.
 *
 * The statistics of a smaller platform take no longer than a page. They are computed when they are asked for, so that the
 * first answer after a change is as new as it can be.
 */
import type { Sleep } from '../../shared/sleep.ts'
import type { CacheEntry, ResponseCache } from '../cache/response-cache.ts'
import type { ComputedStats } from './stats-reader.ts'

export interface StatsAhead {
  /** What was computed ahead, if it has not ended. Otherwise what a new computation returns. */
  load(): Promise<CacheEntry>
  /** Keeps the statistics ahead until the signal aborts. It never rejects. Call it once. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves once the first computation of `run` has ended, or after `startMsMax`. */
  started(): Promise<void>
}

export interface StatsAheadDependencies {
  cache: Pick<ResponseCache, 'get'>
  /** For a request, within the time that a request may take. */
  compute: () => Promise<ComputedStats>
  /** Ahead of requests: it may take longer. */
  computeAhead: (signal: AbortSignal) => Promise<ComputedStats>
  statsCacheMs: number
  /** Unix milliseconds. */
  now: () => number
  /** 0 to 1. */
  random: () => number
  sleep: Sleep
  onError: (error: unknown) => void
}

/** The key of the statistics in the response cache. */
export const statsKey = 'stats'

/** From this number of pledges on, the statistics are kept ahead: they take about 0.1 s and more. */
export const aheadPledgesMin = 1_000_000

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

/** Creates statistics that are computed when they are asked for, until `run` is called. */
export function createStatsAhead(dependencies: StatsAheadDependencies): StatsAhead {
  const { cache, compute, computeAhead, statsCacheMs, now, random, sleep, onError } = dependencies
  const { promise: first, resolve: endFirst } = Promise.withResolvers<void>()
  let ahead: CacheEntry | undefined
  let computedMs = 0

  async function load(): Promise<CacheEntry> {
    return ahead !== undefined && now() < ahead.expiresAt ? ahead : (await compute()).entry
  }

  async function timed(signal: AbortSignal): Promise<ComputedStats> {
    const startedAt = now()
    try {
      return await computeAhead(signal)
    } finally {
      computedMs = now() - startedAt
    }
  }

  /** The entry that follows `current`; `undefined` if the platform is small. */
  async function next(current: CacheEntry | undefined, signal: AbortSignal): Promise<CacheEntry | undefined> {
    if (current === undefined) {
      const { entry, totalPledges } = await timed(signal)
      return totalPledges < aheadPledgesMin ? undefined : entry
    }
    // All processes have the same current entry, so they share the computation of the next one.
    return cache.get(`${statsKey} after ${current.etag}`, async () => (await timed(signal)).entry)
  }

  /** Returns the entry that is cached from now on, and `undefined` if the platform is small. */
  async function round(
    current: CacheEntry | undefined,
    signal: AbortSignal,
  ): Promise<CacheEntry | undefined> {
    ahead = await next(current, signal)
    if (ahead === undefined) return undefined
    if (current !== undefined) await sleep(Math.max(0, current.expiresAt - now()), signal)
    return signal.aborted ? current : cache.get(statsKey, load)
  }

  return {
    load,

    async started() {
      const timer = new AbortController()
      await Promise.race([first, sleep(startMsMax, timer.signal)])
      timer.abort()
    },

    async run(signal) {
      let current: CacheEntry | undefined
      while (!signal.aborted) {
        let restMs: number
        try {
          current = await round(current, signal)
          const leadMs = Math.max(statsCacheMs * leadShare, computedMs * leadFactor) * (1 + random())
          restMs = (current?.expiresAt ?? now() + statsCacheMs) - leadMs - now()
        } catch (error) {
          if (!signal.aborted) onError(error)
          if (current !== undefined && now() >= current.expiresAt) current = undefined
          restMs = statsCacheMs * retryShare
        }
        endFirst()
        await sleep(Math.max(pauseMsMin, restMs, restFactor * computedMs), signal)
      }
    },
  }
}
