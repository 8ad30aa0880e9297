import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRedisStore } from '../../../services/portal/store/redis-store.ts'
import {
  connectTo,
  isUpWithin,
  newPrefix,
  type RedisProcess,
  redisProgram,
  startRedis,
} from '../../support/redis.ts'
import { needs } from '../../support/requirements.ts'
import { storeConformance } from './store.conformance.ts'

let redis: RedisProcess | undefined
beforeAll(async () => {
  if (redisProgram.isMet) redis = await startRedis()
})
afterAll(() => redis?.close())
beforeEach(context => needs(context, redisProgram))

function serverOf(): RedisProcess {
  if (!redis) throw new Error('no Redis was started')
  return redis
}

async function openStore(keyPrefix: string) {
  const connection = connectTo(serverOf())
  expect(await isUpWithin(connection, 10_000)).toBe(true)
  return createRedisStore({ connection, keyPrefix })
}

storeConformance({
  name: 'Redis',
  async open() {
    const prefix = newPrefix()
    return {
      first: await openStore(prefix),
      second: await openStore(prefix),
      pass: ms => sleep(ms),
    }
  },
})

test('without Redis every call fails at once, and works again when Redis is back', async () => {
  const server = serverOf()
  const store = await openStore(newPrefix())
  await server.kill()
  await expect(store.get('a')).rejects.toThrow('Redis')
  expect(store.check()).toMatchObject({ ok: false })
  await server.restart()
  await expect.poll(() => store.check().ok).toBe(true)
  await store.put('a', 'one', 60_000)
  expect(await store.get('a')).toBe('one')
  await store.close()
})
