/**
 * The API of two query processes over one Redis, on the wire: one limit, one response, and what a client sees of a
 * fault.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { readScope } from '../../../../contracts/api/conventions.ts'
import {
  type Credentials,
  generateApiKey,
  generateSecret,
  hashSecret,
} from '../../../../services/api-keys/credentials.ts'
import type { ApiKey } from '../../../../services/query/auth/key-ring.ts'
import { createCache } from '../../../../services/query/cache/cache.ts'
import { responses } from '../../../../services/query/cache/response-cache.ts'
import { snapshots } from '../../../../services/query/lists/campaign-lists.ts'
import { redisState, type SharedState } from '../../../../services/query/shared-state.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createRuntime } from '../../../../services/runtime/runtime.ts'
import { pepper, startTestApp, type TestApp } from '../../../support/query/app.ts'
import { detailRow, fakeTables } from '../../../support/query/fake-tables.ts'
import { needs } from '../../../support/runner/requirements.ts'
import { newPrefix, type RedisProcess, redisProgram, startRedis } from '../../../support/servers/redis.ts'

interface QueryProcess {
  app: TestApp
  parts: SharedState
}

const sharedDetail = 'limits are shared, caches are shared'
const aloneDetail = "Redis does not answer, limits are this process's own, caches are this process's own"

let redis: RedisProcess
let credentials: Credentials
let key: ApiKey
let processes: [QueryProcess, QueryProcess]
const opened: QueryProcess[] = []

beforeEach(() => {
  credentials = { key: generateApiKey(randomBytes), secret: generateSecret(randomBytes) }
  const { secret } = credentials
  key = { key: credentials.key, secretHash: hashSecret(pepper, secret), scopes: [readScope] }
})

/**
 * A process with its own tables of ten campaigns with this name, so that a response shows which process computed it.
 */
async function openProcess(
  name: string,
  keyPrefix: string,
  tablesId = 'one',
  { url = redis.url, listCacheMs = 60_000, keyLimit = 120 } = {},
): Promise<QueryProcess> {
  let reads = 0
  const ids = Array.from({ length: 10 }, (_, n) => `${name}${n}`)
  const { tables } = fakeTables({
    snapshot: () => [{ ids: ids.join('/'), total: ids.length, as_of: '2026-03-01 11:59:55.000' }],
    projects: ({ query_params }) => {
      const wanted = query_params?.ids as string[]
      return wanted.map(id => ({ ...detailRow, campaign_id: id, title: `as ${name} has it, ${++reads}` }))
    },
    detail: () => [{ ...detailRow, title: `as ${name} has it` }],
  })
  const parts = redisState(
    { url, tablesId, reconnectMsMax: 100, limitMsMax: 5_000, cacheMsMax: 5_000 },
    readConfig({
      PLEDGEVIEW_REDIS_PREFIX: keyPrefix,
      PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: String(keyLimit),
    }),
    createRuntime(pino({ level: 'silent' })),
  )
  const { limiters, caches } = parts
  const memory = { bytesMax: 16 * 1024 * 1024, now: Date.now }
  const app = await startTestApp({
    tables,
    clock: { now: Date.now, advance: () => undefined },
    options: { PLEDGEVIEW_CACHE_MS: listCacheMs },
    overrides: {
      keyRing: { lookup: named => (named === key.key ? key : undefined) },
      limiters,
      cache: createCache(responses, { ...memory, shared: caches?.responses }),
      snapshots: createCache(snapshots, { ...memory, shared: caches?.snapshots }),
    },
  })
  const process = { app, parts }
  opened.push(process)
  return process
}

async function closeAll(): Promise<void> {
  for (const { app, parts } of opened.splice(0)) {
    await app.close()
    parts.close()
  }
}

/** Resolves when every process reports the expected state of its limits and caches. */
async function untilThey(expected: 'share' | 'do not share', they = processes): Promise<void> {
  const detail = expected === 'share' ? sharedDetail : aloneDetail
  await vi.waitFor(() => expect(they.map(({ parts }) => parts.check().detail)).toEqual([detail, detail]), {
    timeout: 60_000,
    interval: 5,
  })
}

const get = (n: number, path: string) => processes[n % 2 === 0 ? 0 : 1].app.get(path, credentials)

const snapshotOf = (page: Response) => page.headers.get('x-snapshot-id')

// Of a clock: the seconds have ten digits.
const timeAnswer = '*2\r\n$10\r\n'

/** A way to this port on which some answers take longer, as on a busy machine: those with Redis's time. */
async function delayTimes(port: number, ms: number): Promise<{ url: string; close(): void }> {
  const server = createServer(outer => {
    const inner = connect(port, '127.0.0.1')
    outer.pipe(inner)
    let last = Promise.resolve()
    inner.on('data', chunk => {
      const pauseMs = chunk.includes(timeAnswer) ? ms : 0
      last = last.then(() => (pauseMs > 0 ? delay(pauseMs) : undefined)).then(() => void outer.write(chunk))
    })
    for (const socket of [outer, inner]) socket.on('error', () => undefined)
    inner.on('close', () => outer.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
  }
}

async function statuses(requests: readonly Promise<Response>[]): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const response of await Promise.all(requests)) {
    await response.arrayBuffer()
    counts[response.status] = (counts[response.status] ?? 0) + 1
  }
  return counts
}

describe('two query processes over one Redis', () => {
  beforeEach(async context => {
    needs(context, redisProgram)
    redis = await startRedis()
    const keyPrefix = newPrefix()
    processes = [await openProcess('a', keyPrefix), await openProcess('b', keyPrefix)]
    await untilThey('share')
  })
  afterEach(async () => {
    await closeAll()
    await redis?.close()
  })

  it('answer with the same bytes, tag, watermark and snapshot for a cache period', async () => {
    for (const path of ['/projects?limit=3', '/projects/a-slug', '/stats']) {
      const answers = await Promise.all([0, 1, 2, 3].map(n => get(n, path)))
      const bodies = await Promise.all(answers.map(answer => answer.text()))
      expect(new Set(bodies).size).toBe(1)
      for (const header of ['etag', 'x-data-as-of', 'x-snapshot-id', 'link']) {
        expect(new Set(answers.map(({ headers }) => headers.get(header))).size).toBe(1)
      }
      for (const { headers } of answers) expect(headers.get('ratelimit-policy')).toBe('"default";q=120;w=60')
    }
  })

  it('give a page in one form until its snapshot expires, however late its clock was read', async () => {
    const slow = await delayTimes(redis.port, 200)
    const prefix = newPrefix()
    onTestFinished(slow.close)
    const settings = { url: slow.url, listCacheMs: 1_500, keyLimit: 100_000 }
    const open = (name: string) => openProcess(name, prefix, 'one', settings)
    const pair: typeof processes = [await open('a'), await open('b')]
    await untilThey('share', pair)
    const forms = new Map<string | null, Set<string>>()
    while (forms.size < 4) {
      for (const page of await Promise.all(pair.map(({ app }) => app.get('/projects', credentials)))) {
        const id = snapshotOf(page)
        forms.set(id, (forms.get(id) ?? new Set()).add(await page.text()))
      }
    }
    expect([...forms.values()].map(({ size }) => size)).toEqual([1, 1, 1, 1])
  })

  it('share no answer and no list with a process on other tables, but the limit of the key', async () => {
    const prefix = newPrefix()
    const [old, next] = [await openProcess('old', prefix, 'old'), await openProcess('next', prefix, 'next')]
    await untilThey('share', [old, next])
    const ask = async ({ app }: QueryProcess, path: string) => {
      const response = await app.get(path, credentials)
      return { text: await response.text(), left: Number(response.headers.get('x-ratelimit-remaining')) }
    }
    for (const path of ['/projects?limit=3', '/projects?limit=3&offset=3', '/projects/a-slug']) {
      expect((await ask(old, path)).text).toContain('as old has it')
      expect((await ask(next, path)).text).toContain('as next has it')
    }
    expect((await ask(old, '/projects?limit=3')).left).toBe(120 - 7)
    expect((await ask(next, '/projects?limit=3')).left).toBe(120 - 8)
  })

  it('show by the id that they have different snapshots under one watermark, while Redis is away', async () => {
    await redis.kill()
    await untilThey('do not share')
    const [a, b, again] = [await get(0, '/projects'), await get(1, '/projects'), await get(0, '/projects')]
    expect(a.headers.get('x-data-as-of')).toBe(b.headers.get('x-data-as-of'))
    expect(await a.text()).not.toBe(await b.text())
    expect(snapshotOf(a)).not.toBe(snapshotOf(b))
    expect(snapshotOf(again)).toBe(snapshotOf(a))
  })

  it('keep answering while Redis is killed and restarted, and never above the limit of each', async () => {
    const before = Array.from({ length: 40 }, (_, n) => get(n, '/projects'))
    expect(await statuses(before)).toEqual({ 200: 40 })
    const during = Array.from({ length: 40 }, (_, n) => get(n, '/projects/a-slug'))
    await redis.kill()
    expect(await statuses(during)).toEqual({ 200: 40 })
    await untilThey('do not share')
    expect(await statuses(Array.from({ length: 20 }, (_, n) => get(n, '/stats')))).toEqual({ 200: 20 })
    await redis.restart()
    await untilThey('share')
    // Both together have admitted a hundred, with Redis and without.
    const after = await statuses(Array.from({ length: 60 }, (_, n) => get(n, '/projects')))
    expect(after).toEqual({ 200: 20, 429: 40 })
  })

  it('name a policy with which Redis may forget hits, in what they report to the operator', async () => {
    for (const [policy, effect] of [
      ['allkeys-lru', 'it forgets requests that count'],
      ['noeviction', 'it stops caching'],
    ] as const) {
      await redis.client.config('SET', 'maxmemory', '100mb')
      await redis.client.config('SET', 'maxmemory-policy', policy)
      await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal')
      const fault = `Redis's maxmemory-policy is ${policy}, so ${effect} when its memory is full: set it to volatile-ttl`
      for (const { parts } of processes) {
        await expect.poll(() => parts.check()).toEqual({ ok: true, detail: `${sharedDetail}, ${fault}` })
      }
    }
    await redis.client.config('SET', 'maxmemory-policy', 'volatile-ttl')
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal')
    await untilThey('share')
  })
})

test('a query process that has never reached its Redis names Unix times, as one that has', async () => {
  const url = 'redis://127.0.0.1:1'
  onTestFinished(closeAll)
  const { app } = await openProcess('alone', newPrefix(), 'one', { url, keyLimit: 2 })
  const answers = []
  for (let asked = 0; asked < 3; asked++) answers.push(await app.get('/stats', credentials))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  const resets = answers.map(({ headers }) => Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000)
  for (const seconds of resets) expect(Math.abs(seconds)).toBeLessThan(90)
  const pause = Number(answers[2]?.headers.get('retry-after'))
  expect(pause).toBeGreaterThan(50)
  expect(pause).toBeLessThan(90)
})
