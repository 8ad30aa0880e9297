/**
 * A connection to Redis for what can also be done without Redis: limits and caches.
 *
 * Promises:
 * - an exchange is answered within its deadline or fails, and is never sent again: not by a retry, not from a queue,
 *   not after a reconnection;
 * - a failed exchange takes the connection down, and from then on every exchange fails at once, so that who has
 *   something to fall back on does so without waiting;
 * - it comes back by itself, once Redis has answered within the deadline again. Where it fails soon after that, the
 *   next pause is longer.
 *
 * What Redis still has to read from an abandoned connection it may run late. A script that minds is given a deadline by
 * Redis's own clock, which the connection knows within bounds.
 */
import { Redis, type RedisOptions } from 'ioredis'
import type { Logger } from 'pino'
import { createRedisState, type UpCallback } from './redis-state.ts'

export interface RedisSettings {
  /** `redis://` or `rediss://`, with user, password, port and database where they are needed. */
  url: string
  /** Names the connection in Redis's list of clients, and in the log. */
  name: string
  /** For the answer to one exchange. */
  deadlineMs: number
  /** Longest pause between two attempts to connect. Default 2000. */
  reconnectMsMax?: number
  /** PEM texts, for `rediss://`. Without `ca` the certificates that Node trusts are trusted. */
  tls?: { ca?: string; cert?: string; key?: string }
}

export interface RedisDependencies {
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
  /** Between 0 and 1, to keep processes from reconnecting in step. */
  random: () => number
  logger: Logger
  /** Called at each change, for the metrics. */
  onChange?: (isUp: boolean) => void
}

/** Redis's Unix milliseconds at the moment of asking: not before the one, not after the other. */
export interface RedisTime {
  earliest: number
  latest: number
}

export interface RedisConnection {
  readonly deadlineMs: number
  isUp(): boolean
  /**
   * Runs one exchange, of any number of commands that are sent together. Rejects with `RedisAwayError` at once where
   * the connection is down, and when the exchange fails or its deadline passes.
   */
  run<T>(exchange: (redis: Redis, time: RedisTime) => Promise<T>): Promise<T>
  /**
   * Calls back whenever the connection comes up, and at once where it is up. `server` names the run of the server that
   * it has reached: another name, or none, means that whatever was stored before may be gone.
   */
  onUp(callback: UpCallback): void
  /** Whether it is up, waiting for it for at most so long. */
  whenUp(msMax: number): Promise<boolean>
  close(): void
}

/** Redis cannot be asked, or has not answered in time. */
export class RedisAwayError extends Error {
  override name = 'RedisAwayError'
}

const pauseMsMin = 100
const reconnectMsMaxDefault = 2000
// Who answers nothing for so long, also while a connection is made, is dropped.
const silenceMsMin = 1000
// An abandoned connection that the other side does not close is destroyed.
const disconnectMsMax = 100
// Seldom enough to cost nothing, often enough that the clocks of both sides cannot drift apart by a millisecond.
const heartbeatMs = 1000
// Who stayed up for so long starts again with the shortest pause.
const steadyMs = 10_000

/** Starts to connect, and goes on trying until it is closed. Throws only where the URL is none. */
export function createRedisConnection(
  settings: RedisSettings,
  { now, random, logger, onChange }: RedisDependencies,
): RedisConnection {
  const { name, deadlineMs, reconnectMsMax = reconnectMsMaxDefault } = settings
  const state = createRedisState({ now, logger: logger.child({ redis: name }), onChange })
  let clock: ClockReading = { sentAt: 0, receivedAt: 0, time: 0 }
  let attempts = 0
  let heart: NodeJS.Timeout | undefined

  const redis = openClient(settings, {
    pauseMs: () => pauseMs(attempts++, reconnectMsMax, random()),
    ready: greet,
    lost: state.goAway,
  })

  /** Asks a new connection who it has reached and what time it is there; it is up when both are known. */
  async function greet(): Promise<void> {
    try {
      // Some services let nobody ask for the first. Then every connection counts as one to another server.
      const questions = Promise.all([redis.info('server').catch(() => ''), readClock(redis, now)])
      const [info, reading] = await withDeadline(questions, deadlineMs)
      if (redis.status !== 'ready') return
      clock = reading
      state.comeUp(/^run_id:(\w+)/m.exec(info)?.[1])
      clearTimeout(heart)
      heart = setTimeout(beat, heartbeatMs).unref()
    } catch (error) {
      drop(error)
    }
  }

  async function beat(): Promise<void> {
    const beating = state.era()
    const reading = await run(() => readClock(redis, now)).catch(() => undefined)
    if (reading === undefined || beating !== state.era()) return
    clock = reading
    if (state.lastedMs() >= steadyMs) attempts = 0
    heart = setTimeout(beat, heartbeatMs).unref()
  }

  async function run<T>(exchange: (redis: Redis, time: RedisTime) => Promise<T>): Promise<T> {
    if (!state.isUp()) throw new RedisAwayError(`Redis is away (${name})`)
    const running = state.era()
    try {
      return await withDeadline(exchange(redis, timeAt(clock, now())), deadlineMs)
    } catch (cause) {
      if (running === state.era() && state.isUp()) drop(cause)
      throw new RedisAwayError(`Redis did not answer (${name})`, { cause })
    }
  }

  /** Gives the connection up; its close starts the next attempt. */
  function drop(error: unknown): void {
    state.goAway(error)
    // While an attempt is under way already, this would end it for good.
    if (redis.status === 'ready') redis.disconnect(true)
  }

  return {
    deadlineMs,
    isUp: state.isUp,
    run,
    onUp: state.onUp,
    whenUp: state.whenUp,
    close() {
      state.close()
      clearTimeout(heart)
      redis.disconnect()
    },
  }
}

/** Redis said `time`, in Unix milliseconds, somewhere between these two moments of the own clock. */
interface ClockReading {
  sentAt: number
  receivedAt: number
  time: number
}

async function readClock(redis: Redis, now: () => number): Promise<ClockReading> {
  const sentAt = now()
  const [seconds = 0, micros = 0] = await redis.time()
  return { sentAt, receivedAt: now(), time: Number(seconds) * 1000 + Number(micros) / 1000 }
}

function timeAt({ sentAt, receivedAt, time }: ClockReading, now: number): RedisTime {
  return { earliest: time + now - receivedAt, latest: time + now - sentAt }
}

interface ClientEvents {
  /** For the next attempt to connect to wait. */
  pauseMs: () => number
  ready: () => void
  lost: (error: unknown) => void
}

function openClient(settings: RedisSettings, { pauseMs, ready, lost }: ClientEvents): Redis {
  const redis = new Redis(settings.url, { ...optionsOf(settings), retryStrategy: pauseMs })
  let lastError: unknown
  const lose = () => lost(lastError ?? new Error('the connection was closed'))
  redis.on('error', error => {
    lastError = error
  })
  redis.on('close', lose)
  // Also where no connection can even be tried, as with a certificate that is none.
  redis.on('end', lose)
  redis.on('ready', () => {
    lastError = undefined
    ready()
  })
  return redis
}

function optionsOf({ name, deadlineMs, tls }: RedisSettings) {
  return {
    connectionName: name,
    // Three ways in which a command would be sent later than it was meant.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: Math.max(silenceMsMin, deadlineMs),
    socketTimeout: Math.max(silenceMsMin, deadlineMs),
    disconnectTimeout: disconnectMsMax,
    ...(tls && { tls: { ...tls } }),
  } satisfies RedisOptions
}

/** Doubles from attempt to attempt; half of each pause is left to chance. */
function pauseMs(attempts: number, msMax: number, random: number): number {
  const pause = Math.min(pauseMsMin * 2 ** Math.min(attempts, 16), msMax)
  return (pause * (1 + random)) / 2
}

/** Rejects when `msMax` have passed, but not before what has arrived by then has been read. */
function withDeadline<T>(work: Promise<T>, msMax: number): Promise<T> {
  return new Promise((resolve, reject) => {
    // A process that was busy itself finds the timer due together with the answer, and looks at the timer first.
    const timer = setTimeout(
      () => setImmediate(() => reject(new Error(`no answer within ${msMax} ms`))),
      msMax,
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
