/**
 * The portal's store in Redis, for several portals. Every call is one round trip and one atomic step. It fails within its
 * deadline, and is never sent twice.
 */
import type { Config } from '../../runtime/config.ts'
import { createRedisConnection, type RedisConnection } from '../../runtime/redis/connection.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { PortalStore } from './port.ts'

const redisMsMax = 1_000
// A count without an end is none. One that ends later than a new one is of before Redis's clock was set back.
const countScript = `
local left = redis.call('PTTL', KEYS[1])
if left < 0 or left > tonumber(ARGV[1]) then redis.call('SET', KEYS[1], 0, 'PX', ARGV[1]) end
return redis.call('INCR', KEYS[1])`

export function portalStore(
  { PLEDGEVIEW_REDIS_PREFIX: keyPrefix }: Pick<Config, 'PLEDGEVIEW_REDIS_PREFIX'>,
  url: string,
  { monotonicMs, random, logger, metrics }: Pick<Runtime, 'monotonicMs' | 'random' | 'logger' | 'metrics'>,
): PortalStore {
  const connection = createRedisConnection(
    { url, name: 'pledgeview-portal', deadlineMs: redisMsMax },
    {
      ...{ now: monotonicMs, random, logger },
      onChange: isUp => metrics.redisUp.set({ connection: 'portal' }, isUp ? 1 : 0),
    },
  )
  return createRedisStore(connection, keyPrefix)
}

/** The store in this Redis. Closes the connection when it is closed. */
export function createRedisStore(connection: RedisConnection, keyPrefix: string): PortalStore {
  const nameOf = (key: string) => `${keyPrefix}portal:${key}`
  // Redis takes no time to live below 1 ms.
  const whole = (ms: number) => Math.max(1, Math.ceil(ms))

  return {
    async get(key) {
      return (await connection.run(redis => redis.get(nameOf(key)))) ?? undefined
    },
    async put(key, value, ttlMs) {
      await connection.run(redis => redis.set(nameOf(key), value, 'PX', whole(ttlMs)))
    },
    async claim(key, value, ttlMs) {
      const answer = await connection.run(redis => redis.set(nameOf(key), value, 'PX', whole(ttlMs), 'NX'))
      return answer === 'OK'
    },
    async replace(key, value, ttlMs) {
      const answer = await connection.run(redis => redis.set(nameOf(key), value, 'PX', whole(ttlMs), 'XX'))
      return answer === 'OK'
    },
    async take(key) {
      return (await connection.run(redis => redis.getdel(nameOf(key)))) ?? undefined
    },
    async count(key, windowMs) {
      return Number(await connection.run(redis => redis.eval(countScript, 1, nameOf(key), whole(windowMs))))
    },
    check() {
      return connection.isUp()
        ? { ok: true, detail: 'Redis' }
        : { ok: false, detail: 'Redis is away: nobody can sign in, and nobody is seen as signed in' }
    },
    async close() {
      connection.close()
    },
  }
}
