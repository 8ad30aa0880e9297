/** The promises of the port `PortalStore`, on every implementation. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PortalStore } from '../../../services/portal/store/port.ts'
import { createRedisStore } from '../../../services/portal/store/redis-store.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { testClock } from '../../support/query/app.ts'
import { needs } from '../../support/runner/requirements.ts'
import {
  connectTo,
  isUpWithin,
  newPrefix,
  type RedisProcess,
  redisProgram,
  startRedis,
} from '../../support/servers/redis.ts'

interface Opened {
  /** Two stores on the same data, as two portals have them. */
  first: PortalStore
  second: PortalStore
  /** Lets time go by for the stores. Below 0: the clock is set back. */
  pass(ms: number): Promise<void>
}

function conformance(open: () => Promise<Opened>): void {
  let first: PortalStore
  let second: PortalStore
  let pass: Opened['pass']
  beforeEach(async () => {
    const opened = await open()
    ;({ first, second, pass } = opened)
    return async () => {
      await first.close()
      await second.close()
    }
  })

  test('what one portal puts, another gets, until its time is over', async () => {
    await first.put('a', 'one', 60_000)
    await second.put('a', 'two', 60_000)
    expect(await first.get('a')).toBe('two')
    expect(await first.get('b')).toBeUndefined()
    await first.put('c', 'one', 200)
    await pass(250)
    expect([await first.get('c'), await first.take('c'), await first.replace('c', 'x', 1_000)]).toEqual([
      undefined,
      undefined,
      false,
    ])
    expect(await first.get('a')).toBe('two')
  })

  test('of many that claim or take a value at once, one gets it', async () => {
    const atOnce = <R>(work: (store: PortalStore) => Promise<R>) =>
      Promise.all(Array.from({ length: 8 }, (_, index) => work(index % 2 ? first : second)))
    for (let round = 0; round < 10; round++) {
      const claimed = await atOnce(store => store.claim('a', 'one', 60_000))
      expect(claimed.filter(isMine => isMine)).toHaveLength(1)
      const taken = await atOnce(store => store.take('a'))
      expect(taken.filter(value => value === 'one')).toHaveLength(1)
    }
    expect(await first.claim('b', 'one', 200)).toBe(true)
    await pass(250)
    expect(await second.claim('b', 'two', 200)).toBe(true)
  })

  test('a value that was removed does not come back by a replacement', async () => {
    await first.put('a', 'one', 60_000)
    expect(await second.replace('a', 'two', 60_000)).toBe(true)
    expect(await first.get('a')).toBe('two')
    await first.take('a')
    expect(await second.replace('a', 'three', 60_000)).toBe(false)
    expect(await second.get('a')).toBeUndefined()
  })

  test('no count is lost between portals, and no later count prolongs the window', async () => {
    const counts = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).count('c', 60_000)),
    )
    expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    let counted = await first.count('d', 300)
    // Each count comes long before the end of a window that the one before had prolonged, so such a window would never end.
    for (let turns = 0; turns < 60 && (turns === 0 || counted > 1); turns++) {
      await pass(50)
      counted = await first.count('d', 300)
    }
    expect(counted).toBe(1)
  })

  test('a count ends after its window, also if the clock is set back in it', async () => {
    const windowMs = 3_000
    for (let count = 1; count <= 5; count++) expect(await first.count('e', windowMs)).toBe(count)
    await pass(-3_600_000)
    await pass(windowMs)
    expect(await second.count('e', windowMs)).toBe(1)
    expect(await first.count('e', windowMs)).toBe(2)
  })
}

describe('the store in SQLite', () => {
  const root = mkdtempSync(join(tmpdir(), 'portal-store-'))
  afterAll(() => rmSync(root, { recursive: true }))
  let files = 0

  conformance(async () => {
    const path = join(root, `${files++}.sqlite`)
    const clock = testClock()
    const open = () => openSqliteStore({ path, now: clock.now })
    return { first: open(), second: open(), pass: async ms => clock.advance(ms) }
  })

  test('outlives a restart', async () => {
    const path = join(root, 'restart.sqlite')
    const before = openSqliteStore({ path, now: Date.now })
    await before.put('session:a', 'one', 60_000)
    await before.close()
    const after = openSqliteStore({ path, now: Date.now })
    expect(await after.get('session:a')).toBe('one')
    await after.close()
  })
})

describe('the store in Redis', () => {
  let redis: RedisProcess | undefined
  beforeAll(async () => {
    if (redisProgram.isMet) redis = await startRedis()
  })
  afterAll(() => redis?.close())
  beforeEach(context => needs(context, redisProgram))

  async function openStore(keyPrefix: string) {
    if (!redis) throw new Error('no Redis was started')
    const connection = connectTo(redis)
    expect(await isUpWithin(connection, 10_000)).toBe(true)
    return createRedisStore(connection, keyPrefix)
  }

  conformance(async () => {
    const prefix = newPrefix()
    // Redis reckons with its machine's clock. If that is set back by a time, each of its values lives for this time longer.
    async function setBack(ms: number): Promise<void> {
      for (const key of (await redis?.client.keys(`${prefix}*`)) ?? [])
        await redis?.client.pexpire(key, (await redis.client.pttl(key)) + ms)
    }
    const pass: Opened['pass'] = ms => (ms < 0 ? setBack(-ms) : sleep(ms))
    return { first: await openStore(prefix), second: await openStore(prefix), pass }
  })

  test('fails at once while Redis is away, and works again when it is back', async () => {
    const store = await openStore(newPrefix())
    await redis?.kill()
    await expect(store.get('a')).rejects.toThrow('Redis')
    expect(store.check()).toMatchObject({ ok: false })
    await redis?.restart()
    await expect.poll(() => store.check().ok).toBe(true)
    await store.put('a', 'one', 60_000)
    expect(await store.get('a')).toBe('one')
    await store.close()
  })
})
