/**
 * The rate limiter port: a sliding window per bucket. The limits are settings: runtime/config.ts.
 *
 * Promises that every implementation keeps (test/integration/query/rate-limit/rate-limiter.conformance.ts):
 * - At most `limit` hits of one bucket are admitted within any period of `windowMs`.
 * - A denied hit does not count.
 * - A hit `delayMs` later is admitted, unless other hits have used the room first.
 * - Buckets are independent, except when memory is short: then a bucket may admit fewer hits, but never more.
 *
 * An implementation in memory decides at once, and only one that asks another process returns a promise.
 */

import { invariant } from '../../runtime/ops/invariants.ts'

export interface RateLimiterSettings {
  /** Hits admitted within one window. */
  limit: number
  windowMs: number
}

export interface RateDecision extends RateLimiterSettings {
  allowed: boolean
  /** Hits that would be admitted now, after this one. */
  remaining: number
  /** Whole milliseconds until a hit would be admitted; 0 if some remain. No moment: the clock of a limiter is its own. */
  delayMs: number
}

export interface RateLimiter {
  readonly settings: RateLimiterSettings
  /** Admits and counts a hit if the window of the bucket has room. */
  hit(bucket: string): RateDecision | Promise<RateDecision>
  /** The same as `hit`. Only an implementation that decides at once has it. */
  hitNow?(bucket: string): RateDecision
}

/** The two limiters of the query service. They are separate, so that a flood of addresses cannot push out a key. */
export interface RateLimiters {
  /** One bucket per API key, for requests with valid credentials. */
  keys: RateLimiter
  /** One bucket per client address, for all other requests. */
  addresses: RateLimiter
}

/**
 * The rate limiter in memory, for a service that runs as a single process. `bucketsMax` bounds its memory. `now` is in milliseconds
 * and must not run backwards: full buckets would stay full until it has caught up.
 */
export function createMemoryRateLimiter(
  settings: RateLimiterSettings,
  { bucketsMax, now }: { bucketsMax: number; now: () => number },
): Required<RateLimiter> {
  const log = createSlidingWindowLog(settings, bucketsMax)
  const hit = (bucket: string) => log.take(bucket, now())
  return { settings, hit, hitNow: hit }
}

/*
 * Sliding-window logs in memory: the exact times of the hits that count, per bucket. It reads no clock: times are
 * arguments, in milliseconds, and must not run backwards.
 *
 * The number of buckets bounds the memory. A bucket is dropped only if its window is empty. If there is no room for a
 * new bucket, it shares one overflow window with the other buckets that have no room. If it gets room later, it starts
 * with a copy of that window. So a bucket may be allowed fewer hits than the limit, but never more.
 */

/** The state of a bucket's window. */
interface WindowState {
  /** Whether the hit was admitted, or would be. */
  allowed: boolean
  /** The hits that count, including this one if it was admitted. */
  count: number
  /** If there is no room: the time of the hit that makes room when it expires. Otherwise it has no meaning. */
  blockedBy: number
  /** When it was so. */
  time: number
}

/** Times, oldest first. Those before `first` do not count any more. */
interface Window {
  times: number[]
  first: number
}

// Each hit drops up to two empty windows: that keeps up with any flood of new buckets.
const dropsPerHit = 2

/** Creates a log without hits, for at most `bucketsMax` buckets. */
export function createSlidingWindowLog(settings: RateLimiterSettings, bucketsMax: number) {
  const { limit, windowMs } = settings
  // Ordered by the last hit, so the first window is the first to become empty.
  const windows = new Map<string, Window>()
  const overflow: Window = { times: [], first: 0 }

  function find(bucket: string, time: number): Window {
    const known = windows.get(bucket)
    if (known === undefined) dropEmptied(time)
    const window = known ?? overflow
    dropExpired(window, time - windowMs)
    const isNew = known === undefined && windows.size < bucketsMax
    return isNew ? { times: overflow.times.slice(overflow.first), first: 0 } : window
  }

  function dropEmptied(time: number): void {
    let drops = dropsPerHit
    for (const [bucket, window] of windows) {
      const newest = window.times.at(-1) ?? Number.NEGATIVE_INFINITY
      if (drops-- === 0 || newest >= time - windowMs) return
      windows.delete(bucket)
    }
  }

  return {
    /** Admits and counts a hit at `time` if there is room. */
    take(bucket: string, time: number): RateDecision {
      const window = find(bucket, time)
      const { times, first } = window
      const allowed = times.length - first < limit
      if (allowed) times.push(time)
      if (allowed && window !== overflow) {
        windows.delete(bucket)
        windows.set(bucket, window)
      }
      return decisionOf(settings, {
        allowed,
        count: times.length - first,
        blockedBy: times[first] ?? 0,
        time,
      })
    },

    /** Removes the hit that was counted at exactly this time. */
    release(bucket: string, time: number): void {
      const { times, first } = windows.get(bucket) ?? overflow
      const place = times.lastIndexOf(time)
      if (place >= first) times.splice(place, 1)
    },

    /** The hits of a bucket that counted when it was last taken from. Of a bucket without a window of its own: none. */
    times(bucket: string): number[] {
      const window = windows.get(bucket)
      return window?.times.slice(window.first) ?? []
    },
  }
}

/** Turns the state of a window into a decision. A hit counts for exactly `windowMs`, bounds included. */
export function decisionOf(
  { limit, windowMs }: RateLimiterSettings,
  { allowed, count, blockedBy, time }: WindowState,
): RateDecision {
  const remaining = Math.max(0, limit - count)
  if (remaining === 0) invariant('key-window', count <= limit, () => ({ count, limit }))
  // The first whole millisecond after the blocking hit has expired.
  const delayMs = remaining > 0 ? 0 : Math.floor(blockedBy + windowMs - time) + 1
  return { allowed, limit, windowMs, remaining, delayMs }
}

function dropExpired(window: Window, before: number): void {
  const { times } = window
  while ((times[window.first] ?? before) < before) window.first++
  // Only if they are more than a quarter, because all others have to move.
  if (window.first > times.length / 4) {
    times.splice(0, window.first)
    window.first = 0
  }
}
