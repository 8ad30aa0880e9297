/**
 * The limiter while Redis is killed, paused, read-only and restarted: it keeps deciding, and no window is wrong
 * afterwards.
 */

import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { RateLimiter } from '../../../../services/query/rate-limit/rate-limiter.ts'
import { yieldToEventLoop } from '../../../../services/runtime/async/sleep.ts'
import { freePort } from '../../../../services/runtime/free-port.ts'
import { startProxy } from '../../../support/kafka/proxy.ts'
import { needs } from '../../../support/runner/requirements.ts'
import { type RedisProcess, redisProgram, startRedis } from '../../../support/servers/redis.ts'
import { openLimiters, redisNow, untilAlone, untilShared } from '../../../support/servers/redis-limiters.ts'

let redis: RedisProcess

beforeEach(async context => {
  needs(context, redisProgram)
  redis = await startRedis()
})
afterEach(async () => {
  await redis?.close()
})

const minute = 60_000

// The deadline of tests that make no outage: a busy machine must not look like one.
const longMs = 5000

async function open<Count extends 1 | 2>(count: Count, limit: number, windowMs = minute, deadlineMs = 1000) {
  const opened = await openLimiters(redis, count, { limit, windowMs }, { deadlineMs })
  onTestFinished(opened.close)
  return opened
}

/** Kills Redis. Resolves when these limiters have noticed. */
async function kill(limiters: Parameters<typeof untilAlone>[0]): Promise<void> {
  await redis.kill()
  await untilAlone(limiters)
}

async function admittedOf(limiter: RateLimiter, count: number): Promise<number> {
  const decisions = await Promise.all(Array.from({ length: count }, () => limiter.hit('a')))
  return decisions.filter(({ allowed }) => allowed).length
}

it('the limiter continues if Redis refuses to store, and shares again when it stores', async () => {
  const { limiters, keyOf } = await open(1, 10)
  const [limiter] = limiters
  // As after a failover, when the address may lead to a read-only server.
  await redis.client.replicaof('127.0.0.1', 1)
  expect(await admittedOf(limiter, 4)).toBe(4)
  expect(limiter.isShared()).toBe(false)
  await redis.client.replicaof('NO', 'ONE')
  await untilShared(limiters)
  expect(await admittedOf(limiter, 20)).toBe(6)
  await expect.poll(() => redis.client.zcard(keyOf('a'))).toBe(10)
})

describe('the limiter over a Redis whose memory is full', () => {
  const mebibyte = 1024 * 1024

  beforeEach(async () => {
    await redis.client.config('SET', 'maxmemory', String(8 * mebibyte))
  })

  /** Stores more than fits, as large snapshots do. These keys live longer than the windows. */
  async function fill(): Promise<void> {
    const value = Buffer.alloc(mebibyte / 8, 'x')
    for (let n = 0; n < 200; n++) await redis.client.set(`snapshot ${n}`, value, 'PX', 3_600_000)
    expect(Number(/^evicted_keys:(\d+)/m.exec(await redis.client.info('stats'))?.[1])).toBeGreaterThan(100)
  }

  it.each(['volatile-ttl', 'volatile-lru'])('forgets no hit that counts, with %s', async policy => {
    await redis.client.config('SET', 'maxmemory-policy', policy)
    const { limiters } = await open(2, 120, minute, longMs)
    const [a, b] = limiters
    expect(await admittedOf(a, 60)).toBe(60)
    await fill()
    expect(await admittedOf(b, 200)).toBe(60)
    await fill()
    expect((await admittedOf(a, 200)) + (await admittedOf(b, 200))).toBe(0)
    expect(limiters.every(limiter => limiter.isShared())).toBe(true)
  })

  it('decides also after its clock was set back, if there is nothing to evict', async () => {
    await redis.client.config('SET', 'maxmemory-policy', 'noeviction')
    const { limiters, keyOf } = await open(1, 3, minute, longMs)
    const [limiter] = limiters
    const future = (await redisNow(redis)) + minute
    await redis.client.zadd(keyOf('a'), future, 'x', future, 'y', future, 'z')
    await redis.client.config('SET', 'maxmemory', '1')
    await expect(redis.client.set('more', 'x')).rejects.toThrow('OOM')
    expect(await limiter.hit('a')).toMatchObject({ allowed: false })
    expect(limiter.isShared()).toBe(true)
  })
})

describe('the limiter after Redis came back', () => {
  it('counts the hits that one process admitted alone in all processes', async () => {
    const { limiters, keyOf } = await open(2, 10)
    const [a, b] = limiters
    expect(await admittedOf(b, 1)).toBe(1)
    redis.pause()
    expect(await admittedOf(a, 8)).toBe(8)
    redis.resume()
    await untilShared(limiters)
    expect(await admittedOf(a, 1)).toBe(1)
    expect(await redis.client.zcard(keyOf('a'))).toBe(10)
    expect(await admittedOf(b, 20)).toBe(0)
  })

  it('knows after a restart of Redis the hits of every process before it', async () => {
    const { limiters, keyOf } = await open(2, 10)
    const [a, b] = limiters
    expect(await admittedOf(a, 3)).toBe(3)
    expect(await admittedOf(b, 4)).toBe(4)
    await kill(limiters)
    await redis.restart()
    await untilShared(limiters)
    expect(await admittedOf(a, 1)).toBe(1)
    expect(await admittedOf(b, 20)).toBe(2)
    expect(await redis.client.zcard(keyOf('a'))).toBe(10)
    expect(await admittedOf(a, 20)).toBe(0)
  })

  it('counts a hit once if Redis admitted it and the reply was lost', async () => {
    const port = await freePort()
    const proxy = await startProxy({ port, targetPort: redis.port })
    onTestFinished(() => proxy.close())
    const settings = { limit: 10, windowMs: minute }
    const url = `redis://127.0.0.1:${port}`
    const { limiters, keyOf, close } = await openLimiters({ url }, 1, settings, { deadlineMs: 1000 })
    onTestFinished(close)
    const [limiter] = limiters
    proxy.holdAnswers()
    expect(await admittedOf(limiter, 4)).toBe(4)
    expect(await redis.client.zcard(keyOf('a'))).toBe(4)
    expect(await admittedOf(limiter, 2)).toBe(2)
    proxy.release()
    await untilShared(limiters)
    expect(await admittedOf(limiter, 20)).toBe(4)
    expect(await redis.client.zcard(keyOf('a'))).toBe(10)
  })

  it('never lets one process exceed the limit, whatever happens to Redis', async () => {
    const settings = { limit: 20, windowMs: 400 }
    const { limiters } = await open(1, settings.limit, settings.windowMs, 50)
    const [limiter] = limiters
    const admitted: { from: number; to: number }[] = []
    let isOver = false
    const knocking = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const from = performance.now()
          if ((await limiter.hit('a')).allowed) admitted.push({ from, to: performance.now() })
          await yieldToEventLoop()
        }
      }),
    )
    for (let fault = 0; fault < 3; fault++) {
      await untilShared(limiters)
      redis.pause()
      await expect.poll(() => limiter.isShared()).toBe(false)
      redis.resume()
      await untilShared(limiters)
      await kill(limiters)
      await redis.restart()
    }
    await untilShared(limiters)
    isOver = true
    await knocking
    admitted.sort((a, b) => a.from - b.from)
    for (const [index, first] of admitted.entries()) {
      const last = admitted[index + settings.limit]
      // The limiter's times are whole microseconds, so two of them are up to one nearer to each other than the clock's.
      if (last) expect(last.to - first.from).toBeGreaterThan(settings.windowMs - 0.001)
    }
    expect(admitted.length).toBeGreaterThan(settings.limit)
  })
})

it('the commands of the limiter are one per hit, and none for a hit that the local window refuses', async () => {
  const { limiters } = await open(1, 3, minute, longMs)
  const [limiter] = limiters
  const asked = async () => {
    const commands = (await redis.client.info('commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
    return commands.reduce((sum, [, calls]) => sum + Number(calls), 0)
  }
  const before = await asked()
  for (let n = 1; n <= 3; n++) {
    expect((await limiter.hit('a')).allowed).toBe(true)
    expect(await asked()).toBe(before + n)
  }
  for (let n = 0; n < 10; n++) expect((await limiter.hit('a')).allowed).toBe(false)
  expect(await asked()).toBe(before + 3)
})
