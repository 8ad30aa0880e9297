/**
 * Sliding windows in Redis, one per bucket for all processes, each question one round trip and one step.
 *
 * A hit has an id, so that it counts once however often Redis is told of it. One that Redis comes to after its
 * deadline, when nobody waits for the answer any more, counts for nothing.
 */
import { hash } from 'node:crypto'
import type { RedisConnection } from '../shared/redis.ts'
import { readScript, runScript } from '../shared/redis-script.ts'
import type { WindowState } from './hit-windows.ts'
import type { RateLimiterSettings } from './rate-limiter.ts'

/** The hits of one bucket by their times, in milliseconds of the process's clock. */
export type BucketHits = [bucket: string, times: readonly number[]]

/** A window as Redis has it, and Redis's clock then, in Unix milliseconds. */
export interface RedisWindowState extends WindowState {
  time: number
}

export interface RedisWindows {
  /** Takes a place for the hit that the process made at `time`; no two of its hits have the same. */
  take(bucket: string, time: number): Promise<RedisWindowState>
  /** What `take` would find, without taking a place. */
  look(bucket: string): Promise<RedisWindowState>
  /** Lets hits that were admitted without Redis hold their places. What is asked afterwards is answered afterwards. */
  tell(hits: readonly BucketHits[]): Promise<void>
  /** Sends the script ahead, so that no question has to be asked twice. */
  prepare(): Promise<void>
  /** What Redis's clock was ahead of the process's when it was last asked. */
  aheadMs(): number
}

export interface RedisWindowsDependencies {
  connection: RedisConnection
  keyPrefix: string
  /** Tells the process's hits from those of others. */
  instance: string
  /** The process's clock, in milliseconds. */
  now: () => number
}

// Of one bucket in one script, which holds up everyone else.
const toldHitsMax = 250

/** Questions reject as those of the connection do. */
export function createRedisWindows(
  { limit, windowMs }: RateLimiterSettings,
  { connection, keyPrefix, instance, now }: RedisWindowsDependencies,
): RedisWindows {
  const script = readScript(new URL('redis-windows.lua', import.meta.url))
  let aheadMs = 0

  function ask(bucket: string, id: string, told: readonly number[] = []): Promise<RedisWindowState> {
    return connection.run(async (redis, { latest }) => {
      aheadMs = latest - now()
      const deadline = Math.ceil(latest + connection.deadlineMs)
      // Rounded up, so that a hit never leaves the window in Redis before it leaves that of the process.
      const hits = told.flatMap(time => [idOf(instance, time), Math.ceil(time + aheadMs)])
      const parameters = [limit, windowMs, deadline, id, ...hits]
      return stateOf(await runScript(redis, script, keyPrefix + digest(bucket), parameters))
    })
  }

  return {
    take: (bucket, time) => ask(bucket, idOf(instance, time)),
    look: bucket => ask(bucket, ''),

    async tell(hits) {
      const questions = hits.flatMap(([bucket, times]) =>
        piecesOf(times, toldHitsMax).map(piece => ask(bucket, '', piece)),
      )
      await Promise.all(questions)
    },

    async prepare() {
      await connection.run(redis => redis.script('LOAD', script.source))
    },

    aheadMs: () => aheadMs,
  }
}

function piecesOf<T>(items: readonly T[], lengthMax: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / lengthMax) }, (_, piece) =>
    items.slice(piece * lengthMax, (piece + 1) * lengthMax),
  )
}

/** The microsecond of the hit, in as few characters as will do: Redis keeps one of these for every place. */
function idOf(instance: string, time: number): string {
  return `${instance}:${Math.round(time * 1000).toString(36)}`
}

/** Buckets are API keys and addresses, which have no business in Redis's list of keys. */
function digest(bucket: string): string {
  return hash('sha256', bucket, 'base64url').slice(0, 22)
}

function stateOf(reply: unknown): RedisWindowState {
  const [verdict, count, blockedBy, time] = Array.isArray(reply) ? reply.map(Number) : []
  if (verdict === undefined || count === undefined || blockedBy === undefined || time === undefined) {
    throw new Error('the script of the limiter answered with something else')
  }
  if (verdict < 0) throw new Error('Redis came to a hit after its deadline')
  return { allowed: verdict === 1, count, blockedBy, time }
}
