/**
 * Places in Redis that hold a value until it expires, or else the lock of whoever is loading it: each step one round
 * trip, and a value that was stored is the only one until it expires.
 *
 * Times are those of the process's clock. That of Redis need not agree with it: what is told is how much is left.
 */
import { hash } from 'node:crypto'
import { RedisAwayError, type RedisConnection, type RedisTime } from '../shared/redis.ts'
import { readScript, runScript } from '../shared/redis-script.ts'

export interface StoredValue {
  bytes: Buffer
  /** Unix milliseconds, and no later than it expires in Redis. */
  expiresAt: number
}

export interface RedisSlots {
  /** The value; or the lock, which is the token's now or was another's before. */
  claim(key: string, token: string): Promise<StoredValue | 'claimed' | 'locked' | 'away'>
  /** Keeps the value, with or without the lock, and answers with what is kept: these very bytes, or earlier ones. */
  store(key: string, value: StoredValue): Promise<StoredValue | 'away'>
  /** Gives the lock back where it still is the token's. */
  release(key: string, token: string): Promise<void>
}

export interface RedisSlotsDependencies {
  connection: RedisConnection
  keyPrefix: string
  lockMs: number
  /** Unix milliseconds. */
  now: () => number
}

/** None of the steps rejects where Redis is away. */
export function createRedisSlots({ connection, keyPrefix, lockMs, now }: RedisSlotsDependencies): RedisSlots {
  const script = readScript(new URL('redis-slots.lua', import.meta.url))

  async function ask(
    key: string,
    parametersAt: (time: RedisTime) => (string | number | Buffer)[],
  ): Promise<Answer | undefined> {
    // Keys may be as long as a request, and what stands in them is nobody's business.
    const place = keyPrefix + hash('sha256', key, 'base64url')
    const askedAt = now()
    try {
      const reply = connection.run((redis, time) => runScript(redis, script, place, parametersAt(time)))
      return answerOf(await reply, askedAt)
    } catch (error) {
      if (error instanceof RedisAwayError) return undefined
      throw error
    }
  }

  return {
    async claim(key, token) {
      const answer = await ask(key, () => ['claim', token, lockMs])
      if (answer?.kind === 'value') return answer
      return answer?.kind === 'claimed' || answer?.kind === 'locked' ? answer.kind : 'away'
    },

    async store(key, { bytes, expiresAt }) {
      // A moment and not a duration, so that a value that Redis comes to late still ends when it has to.
      const answer = await ask(key, ({ earliest }) => {
        return ['store', bytes, Math.floor(earliest + expiresAt - now())]
      })
      if (answer?.kind === 'value') return answer
      if (answer?.kind !== 'stored') return 'away'
      return { bytes, expiresAt: Math.min(expiresAt, answer.expiresAt) }
    },

    async release(key, token) {
      await ask(key, () => ['release', token])
    },
  }
}

type Answer =
  | { kind: 'value'; bytes: Buffer; expiresAt: number }
  | { kind: 'stored'; expiresAt: number }
  | { kind: 'claimed' | 'locked' | 'done' }

// What had so much left when Redis answered has no more than that from the moment of asking.
function answerOf(reply: unknown, askedAt: number): Answer {
  const [kind, bytes, leftMs] = Array.isArray(reply) ? reply : []
  const expiresAt = askedAt + Number(leftMs)
  switch (String(kind)) {
    case 'value':
      return { kind: 'value', bytes, expiresAt }
    case 'stored':
      return { kind: 'stored', expiresAt }
    case 'claimed':
      return { kind: 'claimed' }
    case 'locked':
      return { kind: 'locked' }
    default:
      return { kind: 'done' }
  }
}
