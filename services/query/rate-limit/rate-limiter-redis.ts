/**
 * The rate limiter over Redis: one window per bucket for all processes, and a local window in each process.
 *
 * Every hit is counted in the local window first. While Redis is available, Redis decides too, in one round trip. While
 * it is unavailable, the local window decides alone and at once. This promises:
 * - One process never admits more than the limit within any window, whatever happens to Redis.
 * - While Redis is available, all processes together never admit more than the limit. This holds when its memory is full
 *   too, unless its eviction policy is one of allkeys-*: then Redis may forget hits, and the operator is told so.
 * - While Redis is unavailable, each process that has lost it admits up to the limit.
 * - A process that reaches Redis again first reports the hits that it has admitted meanwhile (after a restart of Redis:
 *   all hits that still count). Only then does Redis decide again. When all processes have reported, the shared windows
 *   are complete again.
 */
import type { RedisConnection } from '../../runtime/redis/connection.ts'
import type { RateDecision, RateLimiter, RateLimiterSettings } from './rate-limiter.ts'
import {
  createSlidingWindowLog,
  decisionOf,
  type SlidingWindowLog,
  type WindowState,
} from './sliding-window-log.ts'
import {
  createRedisSlidingWindowLog,
  type RedisSlidingWindowLog,
  type RedisWindowState,
} from './sliding-window-log-redis.ts'

export interface RedisRateLimiterDependencies {
  connection: RedisConnection
  /** Prefix of every key. Limiters with the same prefix share their buckets. */
  keyPrefix: string
  /** A short name that is unique among all processes, and among all runs of this one. */
  instance: string
  /** The number of buckets that have a local window. */
  bucketsMax: number
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
}

export interface RedisRateLimiter extends RateLimiter {
  /** Whether Redis decides at present, and not this process alone. */
  isShared(): boolean
}

// After an outage the report goes in small round trips, so that none of them delays other requests for long.
const reportedBucketsMax = 32
// Each round reports the hits admitted during the round before. The rounds soon get short; the last one has any length.
const roundsMax = 20

/** Creates a limiter that decides alone until the connection is up. Hits never reject. */
export function createRedisRateLimiter(
  settings: RateLimiterSettings,
  dependencies: RedisRateLimiterDependencies,
): RedisRateLimiter {
  const { connection, bucketsMax, now } = dependencies
  const shared = createRedisSlidingWindowLog(settings, dependencies)
  const local = createSlidingWindowLog(settings, bucketsMax)
  const clock = createHitClock(now)
  const sharing = createSharing(connection, shared, local, clock)

  /** Decides by the local window, in Redis's clock. It never promises an earlier reset than Redis would. */
  function decideAlone(state: WindowState, time: number): RateDecision {
    const blockedBy = state.blockedBy + shared.aheadMs() + connection.deadlineMs
    return decisionOf(settings, { ...state, blockedBy }, time + shared.aheadMs())
  }

  async function decide(
    localState: WindowState,
    time: number,
    askRedis: () => Promise<RedisWindowState>,
  ): Promise<RateDecision> {
    if (!sharing.isOn() || !localState.allowed) return decideAlone(localState, time)
    try {
      const state = await askRedis()
      return decisionOf(settings, state, state.time)
    } catch {
      sharing.end(time)
      return decideAlone(localState, time)
    }
  }

  return {
    settings,
    isShared: () => sharing.isOn() && connection.isUp(),

    hit(bucket) {
      const time = clock.next()
      const localState = local.take(bucket, time)
      if (localState.allowed) clock.use(time)
      return decide(localState, time, async () => {
        const state = await shared.take(bucket, time)
        if (!state.allowed) local.release(bucket, time)
        return state
      })
    },
  }
}

interface Sharing {
  /** Whether Redis knows every hit of this process, so that it can decide. */
  isOn(): boolean
  /** A request to Redis failed: from this time on, Redis may not know all hits. */
  end(time: number): void
}

/** Starts again whenever the connection comes up: it reports the hits that Redis missed, and then lets Redis decide. */
function createSharing(
  connection: RedisConnection,
  shared: RedisSlidingWindowLog,
  local: SlidingWindowLog,
  clock: HitClock,
): Sharing {
  let isOn = false
  let unreportedSince = Number.NEGATIVE_INFINITY
  let server: string | undefined
  let attempts = 0

  async function start(reached: string | undefined): Promise<void> {
    const attempt = ++attempts
    isOn = false
    if (reached === undefined || reached !== server) unreportedSince = Number.NEGATIVE_INFINITY
    server = reached
    try {
      for (let round = 1; !isOn && attempt === attempts; round++) await reportRound(attempt, round)
    } catch {
      // The connection is down. It logs the reason, and calls back when it is up again.
    }
  }

  async function reportRound(attempt: number, round: number): Promise<void> {
    const [since, startedAt] = [unreportedSince, clock.next()]
    const hits = local.since(since, startedAt)
    if (hits.length <= reportedBucketsMax || round === roundsMax) {
      // Nothing else runs between reading the hits and sending them. So no hit is missed, and later hits are sent after
      // these.
      isOn = true
      unreportedSince = Number.POSITIVE_INFINITY
      await shared.report(hits).catch(() => end(since))
      return
    }
    for (let first = 0; first < hits.length; first += reportedBucketsMax) {
      await shared.report(hits.slice(first, first + reportedBucketsMax))
    }
    if (attempt === attempts) unreportedSince = startedAt
  }

  function end(since: number): void {
    isOn = false
    unreportedSince = Math.min(unreportedSince, since)
    // Restart only if the request belonged to an earlier connection. If the connection is down, it calls back when it
    // is up.
    if (connection.isUp()) void start(server)
  }

  connection.onUp(start)
  return { isOn: () => isOn, end }
}

interface HitClock {
  /** Milliseconds in whole microseconds, later than every admitted hit: the time of a hit identifies it. */
  next(): number
  /** Marks this time as used by an admitted hit. */
  use(time: number): void
}

function createHitClock(now: () => number): HitClock {
  let lastUsed = Number.NEGATIVE_INFINITY
  return {
    next: () => Math.max(Math.floor(now() * 1000), lastUsed + 1) / 1000,
    use(time) {
      lastUsed = Math.round(time * 1000)
    },
  }
}
