/**
 * A connection to Redis for features that also work without it: limits and caches.
 *
 * Promises:
 * - A round trip succeeds within its deadline or fails. It is never sent again: not by a retry, not from a queue, not
 *   after a reconnection.
 * - A failed round trip closes the connection. From then on every round trip fails at once, so a caller with a fallback
 *   uses it without waiting.
 * - The connection comes back by itself when Redis answers within the deadline again. If it fails soon after that, the
 *   next pause is longer.
 *
 * Redis may still run commands of a closed connection later. A script that must not run late gets a deadline in Redis's
 * own clock, which the connection knows within bounds.
 */
import { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { backoffMs } from '../async/retry.ts'
import { within } from '../async/sleep.ts'
import { messageOf } from '../message-of.ts'

export interface RedisSettings {
  /**
   * `redis://`, or `rediss://` with the certificates that Node trusts (`NODE_EXTRA_CA_CERTS` adds one), with user, password, port and
   * database if needed.
   */
  url: string
  /** The name of the connection in Redis's client list and in the log. */
  name: string
  /** Time limit of one round trip. */
  deadlineMs: number
  /** Longest pause between two attempts to connect. Default 2000. */
  reconnectMsMax?: number
}

interface RedisDependencies {
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
  /** Between 0 and 1. It spreads the reconnections of several processes. */
  random: () => number
  logger: Logger
  /** Called at every change, for the metrics. */
  onChange?: ((isUp: boolean) => void) | undefined
}

/** Redis's clock now, in Unix milliseconds: between these two values. */
export interface RedisTime {
  earliest: number
  latest: number
}

export type RedisConnection = ReturnType<typeof createRedisConnection>

/** Redis is not connected, or has not answered in time. */
export class RedisUnavailableError extends Error {
  override name = 'RedisUnavailableError'
}

const pauseMsMin = 100
const reconnectMsMaxDefault = 2000
// A connection without any answer for this time is closed, also while it is being made.
const timeoutMsMin = 1000
// A closed connection that the other side keeps open is destroyed after this time.
const disconnectMsMax = 100
// Rare enough to cost nothing, and frequent enough that the two clocks cannot drift apart by a millisecond.
const heartbeatMs = 1000
// After this time without a failure, the next pause is the shortest again.
const stableMs = 10_000

/** Starts to connect, and keeps trying until it is closed. Throws only if the URL is invalid. */
export function createRedisConnection(
  settings: RedisSettings,
  { now, random, logger, onChange }: RedisDependencies,
) {
  const { url, name, deadlineMs, reconnectMsMax = reconnectMsMaxDefault } = settings
  const log = logger.child({ redis: name })
  const callbacks: (() => void)[] = []
  let state: 'starting' | 'up' | 'unavailable' | 'closed' = 'starting'
  let changedAt = now()
  /** Another object each time that it comes up. A failure from an earlier connection says nothing about the present one. */
  let server: { clock: ClockReading } | undefined
  let attempts = 0
  let heartbeatTimer: NodeJS.Timeout | undefined
  let lastError: unknown

  const redis = new Redis(url, {
    connectionName: name,
    // Without these three options a command could be sent later than intended.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: Math.max(timeoutMsMin, deadlineMs),
    socketTimeout: Math.max(timeoutMsMin, deadlineMs),
    disconnectTimeout: disconnectMsMax,
    retryStrategy: () => backoffMs(++attempts, { pauseMsMin, pauseMsMax: reconnectMsMax }, random),
  })
  const reportLoss = () => setUnavailable(lastError ?? new Error('the connection was closed'))
  redis.on('error', error => {
    lastError = error
  })
  redis.on('close', reportLoss)
  // Also emitted if no connection can be tried.
  redis.on('end', reportLoss)
  redis.on('ready', () => {
    lastError = undefined
    void handshake()
  })

  /** Reads the server's clock on a new connection. The connection is up when it is known. */
  async function handshake(): Promise<void> {
    try {
      const clock = await within(deadlineMs, readClock(redis, now))
      if (redis.status !== 'ready' || state === 'closed') return
      server = { clock }
      log.info({ awayMs: Math.round(now() - changedAt) }, 'Redis is available')
      change('up')
      for (const callback of callbacks) callback()
      clearTimeout(heartbeatTimer)
      heartbeatTimer = setTimeout(heartbeat, heartbeatMs).unref()
    } catch (error) {
      disconnect(error)
    }
  }

  async function heartbeat(): Promise<void> {
    const asked = server
    const clock = await run(() => readClock(redis, now)).catch(() => undefined)
    if (asked === undefined || clock === undefined || asked !== server) return
    asked.clock = clock
    if (now() - changedAt >= stableMs) attempts = 0
    heartbeatTimer = setTimeout(heartbeat, heartbeatMs).unref()
  }

  /**
   * Runs one round trip with any number of commands that are sent together. Rejects with `RedisUnavailableError`: at
   * once if the connection is down, or when the round trip fails or its deadline passes.
   */
  async function run<T>(roundTrip: (redis: Redis, time: RedisTime) => Promise<T>): Promise<T> {
    const asked = server
    if (asked === undefined) throw new RedisUnavailableError(`Redis is unavailable (${name})`)
    try {
      return await within(deadlineMs, roundTrip(redis, timeAt(asked.clock, now())))
    } catch (cause) {
      if (asked === server) disconnect(cause)
      throw new RedisUnavailableError(`Redis did not answer (${name})`, { cause })
    }
  }

  /** Closes the connection. Its close event starts the next attempt. */
  function disconnect(error: unknown): void {
    setUnavailable(error)
    // During an attempt to connect, this call would stop all further attempts.
    if (redis.status === 'ready') redis.disconnect(true)
  }

  /** Does nothing if it is unavailable already, so that an outage is one log line. */
  function setUnavailable(error: unknown): void {
    if (state === 'unavailable' || state === 'closed') return
    server = undefined
    log.warn({ error: messageOf(error) }, 'Redis is unavailable')
    change('unavailable')
  }

  function change(to: 'up' | 'unavailable'): void {
    state = to
    changedAt = now()
    onChange?.(to === 'up')
  }

  return {
    deadlineMs,
    isUp: () => server !== undefined,
    run,
    /** Calls back whenever the connection comes up, and at once if it is up. Data that was stored before may be lost. */
    onUp(callback: () => void): void {
      callbacks.push(callback)
      if (server) callback()
    },
    /**
     * Registers a Lua script of one key, or of more, which `run` then calls as a method of the client. ioredis sends the text once per
     * connection, then only its hash. If Redis has forgotten the script, it sends the text again.
     */
    defineCommand: (name: string, lua: string, { keys } = { keys: 1 }) =>
      redis.defineCommand(name, { numberOfKeys: keys, lua }),
    close(): void {
      state = 'closed'
      server = undefined
      clearTimeout(heartbeatTimer)
      redis.disconnect()
    },
  }
}

type ClockReading = Awaited<ReturnType<typeof readClock>>

/** Redis's clock was `time`, in Unix milliseconds, at some moment between these two moments of this process's clock. */
async function readClock(redis: Redis, now: () => number) {
  const sentAt = now()
  const [seconds = 0, micros = 0] = await redis.time()
  return { sentAt, receivedAt: now(), time: Number(seconds) * 1000 + Number(micros) / 1000 }
}

function timeAt({ sentAt, receivedAt, time }: ClockReading, now: number): RedisTime {
  return { earliest: time + now - receivedAt, latest: time + now - sentAt }
}

/* What Redis does when its memory is full, as far as limits and caches depend on it. Pure. */

/**
 * What is wrong with the policy, or `undefined`. `info` is Redis's answer to INFO memory; without an answer nothing is
 * known to be wrong.
 */
export function evictionFault(info: string): string | undefined {
  const policy = settingOf(info, 'maxmemory_policy')
  if (policy === undefined || policy.startsWith('volatile-') || settingOf(info, 'maxmemory') === '0')
    return undefined
  const effect = policy === 'noeviction' ? 'it stops caching' : 'it forgets requests that count'
  return `Redis's maxmemory-policy is ${policy}, so ${effect} when its memory is full: set it to volatile-ttl`
}

function settingOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S*)`, 'm').exec(info)?.[1]
}
