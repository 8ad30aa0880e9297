import { expect, it, onTestFinished } from 'vitest'
import { createCache } from '../../../services/query/cache/cache.ts'
import { type CacheEntry, responses } from '../../../services/query/cache/response-cache.ts'
import { type Ahead, createAhead } from '../../../services/query/endpoints/ahead.ts'
import { yieldToEventLoop } from '../../../services/runtime/async/sleep.ts'

const key = 'a slow answer'
const periodMs = 300_000
const computationMs = 2_000
const stepMs = 500

/** Time that passes only when the test lets it. */
function manualTime() {
  let [time, aheadMs] = [0, 0]
  const waiting = new Set<{ at: number; wake: () => void }>()
  return {
    now: () => time + aheadMs,
    monotonicMs: () => time,
    /** Sets the system clock. No sleep ends by it. */
    step(ms: number) {
      aheadMs += ms
    },
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>(resolve => {
        const waiter = { at: time + ms, wake: resolve }
        waiting.add(waiter)
        if (signal?.aborted) resolve()
        signal?.addEventListener('abort', () => resolve(), { once: true })
      }),
    async pass(ms: number, atEachStep: () => unknown = () => {}) {
      for (const end = time + ms; time < end; ) {
        time += stepMs
        for (const waiter of waiting) {
          if (waiter.at > time) continue
          waiting.delete(waiter)
          waiter.wake()
        }
        for (let turns = 0; turns < 5; turns++) await yieldToEventLoop()
        await atEachStep()
      }
    },
  }
}

/** Processes that share a cache. */
function startProcesses(count: number, isSlow: boolean, msOfOne = computationMs) {
  const time = manualTime()
  const cache = createCache(responses, { bytesMax: 1_000_000, now: time.now })
  const world = { ...time, cache, ahead: 0, forRequests: 0, isAway: false, errors: 0 }
  let version = 0
  const result = (createdAt: number) => {
    if (world.isAway) throw new Error('ClickHouse is away')
    const rest = { asOf: null, snapshotId: null, link: null, createdAt, expiresAt: createdAt + periodMs }
    return { body: Buffer.from(''), etag: `W/"${version++}"`, ...rest }
  }
  const processes = Array.from({ length: count }, (_, index) =>
    createAhead(
      key,
      cache,
      periodMs,
      {
        compute: async () => {
          world.forRequests++
          return result(time.now())
        },
        computeAhead: async () => {
          world.ahead++
          const createdAt = time.now()
          await time.sleep(msOfOne)
          return { entry: result(createdAt), isSlow }
        },
        onError: () => world.errors++,
      },
      { ...time, random: () => index / count },
    ),
  )
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  for (const process of processes) void process.run(controller.signal)
  return { world, processes, request: (process: Ahead) => cache.get(key, process.load) }
}

it('computes before the cached answer ends, so no request ever computes, and none gets an answer older than a period', async () => {
  const { world, processes, request } = startProcesses(1, true)
  const [process] = processes as [Ahead]
  await world.pass(2 * computationMs)
  const shown = new Set<string>()
  let latest: CacheEntry | undefined
  await world.pass(5 * periodMs, async () => {
    const entry = await request(process)
    expect(world.now() - entry.createdAt).toBeLessThanOrEqual(periodMs)
    expect(entry.createdAt).toBeGreaterThanOrEqual(latest?.createdAt ?? 0)
    latest = entry
    shown.add(entry.etag)
  })
  expect(world.forRequests).toBe(0)
  expect(shown.size).toBeGreaterThanOrEqual(5)
  expect(world.ahead).toBeLessThanOrEqual(7)
})

it('goes on when the clock is set back or forward, and gives no answer older than a period', async () => {
  const { world, processes, request } = startProcesses(1, true)
  const [process] = processes as [Ahead]
  for (const ms of [-10 * periodMs, 10 * periodMs]) {
    await world.pass(2 * periodMs)
    world.step(ms)
    await world.pass(periodMs, async () => {
      const { createdAt, expiresAt } = await request(process)
      expect(createdAt).toBeLessThanOrEqual(world.now())
      expect(expiresAt - world.now()).toBeLessThanOrEqual(periodMs)
    })
    // Of which one may have no answer yet.
    const asked = world.forRequests
    await world.pass(2 * periodMs, () => request(process))
    expect(world.forRequests).toBe(asked)
  }
})

it('shares each computation among the processes of a cache', async () => {
  const { world, processes, request } = startProcesses(4, true)
  await world.pass(2 * computationMs)
  const atStart = world.ahead
  expect(atStart).toBe(4)
  await world.pass(5 * periodMs, () => Promise.all(processes.map(request)))
  expect(world.forRequests).toBe(0)
  expect(world.ahead - atStart).toBeLessThanOrEqual(6)
})

it('leaves an answer that is not slow to the requests, so that it is new', async () => {
  const { world, processes, request } = startProcesses(1, false)
  const [process] = processes as [Ahead]
  await world.pass(periodMs / 2)
  const askedAt = world.now()
  expect((await request(process)).createdAt).toBe(askedAt)
  expect(world.forRequests).toBe(1)
})

it('serves what is young enough while ClickHouse is away, then its error, and is ahead again afterwards', async () => {
  const { world, processes, request } = startProcesses(1, true)
  const [process] = processes as [Ahead]
  await world.pass(2 * computationMs)
  const { expiresAt } = await request(process)
  world.isAway = true
  await world.pass(expiresAt - world.now() - stepMs)
  expect((await request(process)).expiresAt).toBe(expiresAt)
  await world.pass(2 * stepMs)
  await expect(request(process)).rejects.toThrow('ClickHouse is away')
  await world.pass(periodMs)
  // It tries again after pauses, and not all the time.
  expect(world.errors).toBeGreaterThan(1)
  expect(world.ahead * computationMs).toBeLessThan(world.now() / 5)
  world.isAway = false
  await world.pass(periodMs / 10)
  const asked = world.forRequests
  await world.pass(2 * periodMs, () => request(process))
  expect(world.forRequests).toBe(asked)
})

it('shows nothing after a purge that was computed or begun before it, and is ahead again at once', async () => {
  const { world, processes, request } = startProcesses(1, true)
  const [process] = processes as [Ahead]
  const purge = () => {
    world.cache.forgetAll(1)
    process.forgetAll()
    return world.now()
  }
  await world.pass(2 * computationMs)
  for (let purges = 0; purges < 2; purges++) {
    const purgedAt = purge()
    const asked = world.forRequests
    expect((await process.load()).createdAt).toBeGreaterThanOrEqual(purgedAt)
    expect(world.forRequests).toBe(asked + 1)
    // The next purge comes while an answer is computed.
    await world.pass(computationMs / 2)
  }
  // What was begun between the purges has ended, and what was begun after them has not.
  await world.pass(computationMs / 2)
  const asked = world.forRequests
  await process.load()
  expect(world.forRequests).toBe(asked + 1)
  await world.pass(computationMs)
  await world.pass(periodMs, () => request(process))
  expect(world.forRequests).toBe(asked + 1)
})

it('lets the service start after five seconds, however long the first computation takes', async () => {
  const { world, processes } = startProcesses(1, true, Number.POSITIVE_INFINITY)
  const [process] = processes as [Ahead]
  let isStarted = false
  void process.started().then(() => {
    isStarted = true
  })
  await world.pass(4_500)
  expect(isStarted).toBe(false)
  await world.pass(1_000)
  expect(isStarted).toBe(true)
})
