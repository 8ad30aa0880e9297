/** The usage through the whole query service: its loop, its end, and a time without ClickHouse. */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { generateApiKey, generateSecret, hashSecret } from '../../../../services/api-keys/credentials.ts'
import { type QueryService, startQueryService } from '../../../../services/query/service.ts'
import { memoryState } from '../../../../services/query/shared-state.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics, type Metrics } from '../../../../services/runtime/ops/metrics.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import { lostConnection, obstructed } from '../../../support/faulty-tables.ts'
import { keyHeaders, pepper } from '../../../support/query-app.ts'
import { openQueryTables, type QueryTables } from '../../../support/query-tables.ts'
import { readUsage, totalOf } from '../../../support/usage.ts'

const credentials = { key: generateApiKey(randomBytes), secret: generateSecret(randomBytes) }
let store: QueryTables
let services: QueryService[] = []
let metrics: Metrics

beforeAll(async () => {
  store = await openQueryTables()
  const { key, secret } = credentials
  await store.putKeys([
    { api_key: key, secret_hash: hashSecret(pepper, secret), scopes: ['read:public'], is_active: true },
  ])
  // A busy machine must not reach the two seconds that the last flush has.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal)
})
afterEach(async () => {
  for (const service of services.splice(0)) await service.close()
})
afterAll(async () => {
  vi.restoreAllMocks()
  await store?.close()
})

async function start(tables: Tables = store.tables): Promise<QueryService> {
  const config = readConfig({})
  metrics = createMetrics()
  const service = await startQueryService({
    tables,
    databases: store.databases,
    config,
    keyPepper: pepper,
    state: memoryState(config),
    metrics,
    logger: pino({ level: 'silent' }),
  })
  services.push(service)
  await expect.poll(() => service.keyRing.isReady()).toBe(true)
  await service.app.listen({ host: '127.0.0.1', port: 0 })
  return service
}

async function ask({ app }: QueryService): Promise<number> {
  const { port } = app.server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/stats`, { headers: keyHeaders(credentials) })
  await response.arrayBuffer()
  return response.status
}

async function usage() {
  return readUsage(store.tables, store.databases, { key: credentials.key, now: Date.now() })
}

const okSoFar = async () => totalOf(await usage()).ok

test('is in the table some seconds after the answer, and every answer is there after the end', async () => {
  const before = await okSoFar()
  const service = await start()
  expect(await ask(service)).toBe(200)
  await expect.poll(okSoFar, { timeout: 20_000 }).toBe(before + 1)
  expect((await usage()).last_used).toBeGreaterThan(Date.now() - 120_000)
  // The row is in the table a moment before its insert is answered.
  await expect
    .poll(() => metrics.registry.metrics())
    .toMatch(/pledgeview_usage_flushes_total\{outcome="written"\} [1-9]/)

  for (let request = 0; request < 3; request++) expect(await ask(service)).toBe(200)
  services = []
  await service.close()
  expect(await okSoFar()).toBe(before + 4)
  // The same service counts what its cache answered.
  const counted = await metrics.registry.metrics()
  expect(counted).toContain('pledgeview_cache_lookups_total{cache="responses",outcome="miss"} 1\n')
  expect(counted).toContain('pledgeview_cache_lookups_total{cache="responses",outcome="hit"} 3\n')
})

test('waits for a ClickHouse that takes no inserts, while the API answers; the metric tells it', async () => {
  const before = await okSoFar()
  let isAway = false
  const tables = obstructed(store.tables, {
    before({ kind }) {
      if (isAway && kind === 'insert') throw lostConnection()
    },
  })
  const service = await start(tables)
  isAway = true
  expect(await ask(service)).toBe(200)
  const failures = async () =>
    Number(/flushes_total\{outcome="failed"\} (\d+)/.exec(await metrics.registry.metrics())?.[1] ?? 0)
  await expect.poll(failures, { timeout: 20_000 }).toBeGreaterThan(0)
  expect(await ask(service)).toBe(200)
  expect(await okSoFar()).toBe(before)
  isAway = false
  services = []
  await service.close()
  expect(await okSoFar()).toBe(before + 2)
})
