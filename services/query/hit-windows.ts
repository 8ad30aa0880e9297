/**
 * Sliding windows in memory: the exact times of the hits that hold a place, per bucket. No clock: times are arguments,
 * in Unix milliseconds, and must not run backwards.
 *
 * Memory is bounded by the number of buckets. A bucket is dropped only when its window is empty. A newcomer for whom
 * there is no room shares one overflow window with the others in that position, and a bucket that gets room later
 * starts with a copy of it: so a bucket may be given less than it could be, and is never given more.
 */
import type { RateDecision, RateLimiterSettings } from './rate-limiter.ts'

/** What a question has found in a bucket's window. */
export interface WindowState {
  /** Whether the place was taken, or could be. */
  allowed: boolean
  /** Places in use, the one that was taken included. */
  count: number
  /** The hit whose leaving makes room again, where there is none now; else of no meaning. */
  blockedBy: number
}

export interface HitWindows {
  /** Takes a place at `time` when there is one. */
  take(bucket: string, time: number): WindowState
  /** What `take` would find, without taking a place. */
  look(bucket: string, time: number): WindowState
  /** Gives back the place that was taken at exactly this time. */
  release(bucket: string, time: number): void
  /** The hits from `earliest` on that still hold a place at `time`, by bucket, those of the overflow left out. */
  since(earliest: number, time: number): [bucket: string, times: number[]][]
}

/** Times, oldest first, in a ring that grows as needed. */
interface Window {
  times: Float64Array
  head: number
  length: number
}

const ringLengthMin = 8
// Windows that have emptied are dropped as others are hit: two for one keeps up with any flood of new buckets.
const dropsPerHit = 2

/** Makes windows without hits, of at most `bucketsMax` buckets. */
export function createHitWindows({ limit, windowMs }: RateLimiterSettings, bucketsMax: number): HitWindows {
  // In the order of the last hit, so that the first is the first to empty.
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

  function stateOf(window: Window, allowed: boolean): WindowState {
    return { allowed, count: window.length, blockedBy: at(window, 0) }
  }

  return {
    take(bucket, time) {
      const window = find(bucket, time)
      if (window.length >= limit) return stateOf(window, false)
      append(window, time)
      if (window !== overflow) {
        windows.delete(bucket)
        windows.set(bucket, window)
      }
      return stateOf(window, true)
    },

    look(bucket, time) {
      const window = find(bucket, time)
      return stateOf(window, window.length < limit)
    },

    release(bucket, time) {
      remove(windows.get(bucket) ?? overflow, time)
    },

    since(earliest, time) {
      const from = Math.max(earliest, time - windowMs)
      const found: [string, number[]][] = []
      for (const [bucket, window] of windows) {
        const times = timesFrom(window, from)
        if (times.length > 0) found.push([bucket, times])
      }
      return found
    },
  }
}

/** What to tell of a window's state at `time`. A hit counts for exactly `windowMs`, bounds included. */
export function decisionOf(
  { limit, windowMs }: RateLimiterSettings,
  { allowed, count, blockedBy }: WindowState,
  time: number,
): RateDecision {
  const remaining = Math.max(0, limit - count)
  // The first whole second after the last moment at which the blocking hit counts.
  const resetAt = remaining > 0 ? Math.floor(time / 1000) : Math.floor((blockedBy + windowMs) / 1000) + 1
  return { allowed, limit, remaining, resetAt }
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

function timesFrom(window: Window, from: number): number[] {
  const times: number[] = []
  for (let index = window.length - 1; index >= 0 && at(window, index) >= from; index--) {
    times.push(at(window, index))
  }
  return times.reverse()
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

// What is given back was taken lately, so it is looked for from the newest on.
function remove(window: Window, time: number): void {
  let index = window.length - 1
  while (index >= 0 && at(window, index) > time) index--
  if (index < 0 || at(window, index) !== time) return
  for (; index < window.length - 1; index++) {
    window.times[(window.head + index) % window.times.length] = at(window, index + 1)
  }
  window.length--
}

function dropExpired(window: Window, before: number): void {
  while (window.length > 0 && at(window, 0) < before) {
    window.head = (window.head + 1) % window.times.length
    window.length--
  }
}
