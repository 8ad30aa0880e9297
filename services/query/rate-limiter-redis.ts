/**
 * The rate limiter over Redis: one window per bucket for all processes, and this process's own beside it.
 *
 * Every hit takes its place in the process's own window first. While Redis answers it decides as well, in one round
 * trip; while it does not, the own window decides alone and at once. So:
 * - one process never admits more than the limit within any window, whatever becomes of Redis;
 * - while Redis answers, all processes together never do;
 * - while it is away, each process that is cut off admits up to the limit;
 * - a process that reaches Redis again tells it first what it has admitted meanwhile (after a restart of Redis, all
 *   that still counts), and only then lets it decide: when all have, the windows of all are whole again.
 */
import type { RedisConnection } from '../shared/redis.ts'
import { createHitWindows, decisionOf, type HitWindows, type WindowState } from './hit-windows.ts'
import type { RateDecision, RateLimiter, RateLimiterSettings } from './rate-limiter.ts'
import { createRedisWindows, type RedisWindowState, type RedisWindows } from './redis-windows.ts'

export interface RedisRateLimiterDependencies {
  connection: RedisConnection
  /** Stands before every key: limiters that share it share their buckets. */
  keyPrefix: string
  /** A short name that no other process has, nor an earlier run of this one. */
  instance: string
  /** Buckets that the process's own windows are kept of. */
  bucketsMax: number
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
}

export interface RedisRateLimiter extends RateLimiter {
  /** Whether Redis decides at present, and not this process alone. */
  isShared(): boolean
}

// What Redis is told after an outage goes in small exchanges, so that none of them holds up others for long.
const toldBucketsMax = 32
// Each round tells what was admitted during the one before. They get short quickly; the last is as long as it is.
const roundsMax = 20

/** Makes a limiter that decides alone until the connection is up. Hits and peeks never reject. */
export function createRedisRateLimiter(
  settings: RateLimiterSettings,
  dependencies: RedisRateLimiterDependencies,
): RedisRateLimiter {
  const { connection, bucketsMax, now } = dependencies
  const shared = createRedisWindows(settings, dependencies)
  const own = createHitWindows(settings, bucketsMax)
  const clock = createHitClock(now)
  const sharing = createSharing({ connection, shared, own, clock })

  /** Decides by the own window, in terms of Redis's clock, and promises nothing sooner than Redis would. */
  function decideAlone(state: WindowState, time: number): RateDecision {
    const blockedBy = state.blockedBy + shared.aheadMs() + connection.deadlineMs
    return decisionOf(settings, { ...state, blockedBy }, time + shared.aheadMs())
  }

  async function decide(
    mine: WindowState,
    time: number,
    question: () => Promise<RedisWindowState>,
  ): Promise<RateDecision> {
    if (!sharing.isOn() || !mine.allowed) return decideAlone(mine, time)
    try {
      const state = await question()
      return decisionOf(settings, state, state.time)
    } catch {
      sharing.end(time)
      return decideAlone(mine, time)
    }
  }

  return {
    settings,
    isShared: () => sharing.isOn() && connection.isUp(),

    hit(bucket) {
      const time = clock.next()
      const mine = own.take(bucket, time)
      if (mine.allowed) clock.use(time)
      return decide(mine, time, async () => {
        const state = await shared.take(bucket, time)
        if (!state.allowed) own.release(bucket, time)
        return state
      })
    },

    peek(bucket) {
      const time = clock.next()
      return decide(own.look(bucket, time), time, () => shared.look(bucket))
    },
  }
}

interface Sharing {
  /** Whether Redis knows every hit of this process, so that it can decide. */
  isOn(): boolean
  /** A question failed: from this time on there may be hits that Redis does not know. */
  end(time: number): void
}

interface SharingDependencies {
  connection: RedisConnection
  shared: RedisWindows
  own: HitWindows
  clock: HitClock
}

/** Goes on by itself whenever the connection comes up, after telling Redis what it missed. */
function createSharing({ connection, shared, own, clock }: SharingDependencies): Sharing {
  let isOn = false
  let untoldSince = Number.NEGATIVE_INFINITY
  let server: string | undefined
  let attempts = 0

  async function start(reached: string | undefined): Promise<void> {
    const attempt = ++attempts
    isOn = false
    if (reached === undefined || reached !== server) untoldSince = Number.NEGATIVE_INFINITY
    server = reached
    try {
      await shared.prepare()
      for (let round = 1; !isOn && attempt === attempts; round++) await tellRound(attempt, round)
    } catch {
      // The connection is down then. It says why, and calls when it is back.
    }
  }

  async function tellRound(attempt: number, round: number): Promise<void> {
    const [since, startedAt] = [untoldSince, clock.next()]
    const hits = own.since(since, startedAt)
    if (hits.length <= toldBucketsMax || round === roundsMax) {
      // From looking to asking nothing else runs, so no hit is missed, and those that follow are asked after this.
      isOn = true
      untoldSince = Number.POSITIVE_INFINITY
      await shared.tell(hits).catch(() => end(since))
      return
    }
    for (let first = 0; first < hits.length; first += toldBucketsMax) {
      await shared.tell(hits.slice(first, first + toldBucketsMax))
    }
    if (attempt === attempts) untoldSince = startedAt
  }

  function end(since: number): void {
    isOn = false
    untoldSince = Math.min(untoldSince, since)
    // Only where a question outlived its connection: else the connection is down and calls when it is back.
    if (connection.isUp()) void start(server)
  }

  connection.onUp(start)
  return { isOn: () => isOn, end }
}

interface HitClock {
  /** Whole microseconds, in milliseconds, after every hit that was admitted: its time tells a hit from the others. */
  next(): number
  /** A hit was admitted at this time. */
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
