/** Checks that ask another service: probes get an answer in time, and do not pile up. */
import { expect, test } from 'vitest'
import { type Check, lagCheck, sharedAnswered, tablesCheck } from '../../../../services/runtime/ops/checks.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { createOpsServer } from '../../../../services/runtime/ops/ops-server.ts'

/** A check that ends when the test says so. */
function slowCheck() {
  const calls: { resolve(check: Check): void; reject(error: Error): void }[] = []
  return { calls, check: () => new Promise<Check>((resolve, reject) => calls.push({ resolve, reject })) }
}

test('probes share a check that is under way, and each is answered in time', async () => {
  const { calls, check } = slowCheck()
  const lag = sharedAnswered(check, 10)
  const server = createOpsServer({
    hosts: [],
    health: () => ({}),
    readiness: async () => ({ lag: await lag() }),
    status: async () => ({}),
    metrics: createMetrics(),
    beforeScrape: async () => {},
  })
  const probe = () => server.inject({ url: '/readyz', headers: { host: 'localhost' } })
  for (const probes of [[probe(), probe()], [probe()]]) {
    for (const { statusCode, json } of await Promise.all(probes)) {
      expect(statusCode).toBe(503)
      expect(json().checks.lag.detail).toBe('no answer within 10 ms')
    }
  }
  expect(calls).toHaveLength(1)
  await server.close()
})

test('a check of silent tables ends in time, and leaves no statement behind', async () => {
  let asked: AbortSignal | undefined
  const silent = (_: unknown, { signal }: { signal?: AbortSignal } = {}) => {
    asked = signal
    return new Promise<never>(() => {})
  }
  expect(await tablesCheck({ rows: silent }, 10)).toEqual({ ok: false, detail: 'no answer within 10 ms' })
  expect(asked?.aborted).toBe(true)
})

test('the lag is within its bound up to the last record that it allows, over all partitions', () => {
  const lag = [0, 1].map(partition => ({ topic: 'pledges' as const, partition, committed: 3, end: 8 }))
  expect(lagCheck(lag, 10)).toEqual({ ok: true, detail: '10 records wait, at most 10 are allowed' })
  expect(lagCheck(lag, 9)).toEqual({ ok: false, detail: '10 records wait, at most 9 are allowed' })
})

test('callers of the costly pages share one computation', async () => {
  const counts = { readiness: 0, status: 0, scrape: 0 }
  const count = (name: keyof typeof counts) => async () => {
    counts[name]++
    await new Promise(resolve => setImmediate(resolve))
    return {}
  }
  const server = createOpsServer({
    hosts: [],
    health: () => ({}),
    readiness: count('readiness'),
    status: count('status'),
    metrics: createMetrics(),
    beforeScrape: async () => void (await count('scrape')()),
  })
  await server.ready()
  const ask = (url: string) => server.inject({ url, headers: { host: 'localhost' } })
  for (const url of ['/readyz', '/status', '/metrics']) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(url)))
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(10).fill(200))
  }
  expect(counts).toEqual({ readiness: 1, status: 1, scrape: 1 })
  await server.close()
})
