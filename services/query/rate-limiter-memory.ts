/**
 * The rate limiter in memory, for a service that is one process: the exact times of the admitted hits, per bucket.
 *
 * Memory is bounded by the number of buckets. A bucket is dropped only when its window is empty. A newcomer for whom
 * there is no room shares one overflow window with the others in that position, and a bucket that gets room later
 * starts with a copy of it: so a bucket may be admitted less than it could be, and is never admitted more.
 */
import type { RateDecision, RateLimiter, RateLimiterSettings } from './rate-limiter.ts'

/** The times of the hits that still count, oldest first, in a ring that grows as needed. */
interface Window {
  times: Float64Array
  head: number
  length: number
}

const ringLengthMin = 8
// Windows that have emptied are dropped as others are hit: two for one keeps up with any flood of new buckets.
const dropsPerHit = 2

/**
 * Makes a limiter without hits. `now` is in Unix milliseconds and must not run backwards, which would hold buckets
 * closed until it has caught up.
 */
export function createMemoryRateLimiter(
  settings: RateLimiterSettings,
  { bucketsMax, now }: { bucketsMax: number; now: () => number },
): RateLimiter {
  const { limit, windowMs } = settings
  // In the order of the last admitted hit, so that the first is the first to empty.
  const windows = new Map<string, Window>()
  const overflow = emptyWindow()

  function find(bucket: string, time: number): Window {
    const known = windows.get(bucket) ?? (isFull(time) ? overflow : undefined)
    if (known) {
      dropExpired(known, time - windowMs)
      return known
    }
    dropExpired(overflow, time - windowMs)
    return copyOf(overflow)
  }

  function isFull(time: number): boolean {
    dropEmptied(time)
    return windows.size >= bucketsMax
  }

  function dropEmptied(time: number): void {
    let drops = dropsPerHit
    for (const [bucket, window] of windows) {
      if (drops-- === 0 || newest(window) >= time - windowMs) return
      windows.delete(bucket)
    }
  }

  function decide(window: Window, allowed: boolean, time: number): RateDecision {
    const remaining = limit - window.length
    // A hit counts for exactly windowMs, bounds included, so the first whole second after that is free again.
    const resetAt =
      remaining > 0 ? Math.floor(time / 1000) : Math.floor((at(window, 0) + windowMs) / 1000) + 1
    return { allowed, limit, remaining, resetAt }
  }

  return {
    settings,

    async hit(bucket) {
      const time = now()
      const window = find(bucket, time)
      if (window.length >= limit) return decide(window, false, time)
      append(window, time)
      if (window !== overflow) {
        windows.delete(bucket)
        windows.set(bucket, window)
      }
      return decide(window, true, time)
    },

    async peek(bucket) {
      const time = now()
      const window = find(bucket, time)
      return decide(window, window.length < limit, time)
    },
  }
}

function emptyWindow(): Window {
  return { times: new Float64Array(ringLengthMin), head: 0, length: 0 }
}

function copyOf(window: Window): Window {
  return { ...window, times: window.times.slice() }
}

function at({ times, head }: Window, index: number): number {
  return times[(head + index) % times.length] ?? 0
}

function newest(window: Window): number {
  return window.length === 0 ? Number.NEGATIVE_INFINITY : at(window, window.length - 1)
}

function append(window: Window, time: number): void {
  if (window.length === window.times.length) grow(window)
  window.times[(window.head + window.length) % window.times.length] = time
  window.length++
}

function grow(window: Window): void {
  const times = new Float64Array(2 * window.times.length)
  for (let index = 0; index < window.length; index++) times[index] = at(window, index)
  window.times = times
  window.head = 0
}

function dropExpired(window: Window, before: number): void {
  while (window.length > 0 && at(window, 0) < before) {
    window.head = (window.head + 1) % window.times.length
    window.length--
  }
}
