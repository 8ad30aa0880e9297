/** What a query process keeps of a campaign leaves its memory in time: the heap no longer contains its texts. */
import { getHeapSnapshot } from 'node:v8'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { aheadPledgesMin, type statsBodySchema } from '../../../services/query/endpoints/stats.ts'
import { forgetMs, startForgetting } from '../../../services/query/forgetting.ts'
import { generationOf } from '../../../services/tables/generation-log.ts'
import type { Statement } from '../../../services/tables/port.ts'
import { purgeLookMs, writePurge } from '../../../services/tables/schema/identity.ts'
import { startTestApp, type TestApp, testClock } from '../../support/query/app.ts'
import { fakeTables, statsRow } from '../../support/query/fake-tables.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../support/query/tables.ts'

const fiveMinutesMs = 300_000
// Half of a text is in this file; the whole is made for each use, so that only the service can keep it.
const whole = (half: string) => ['erased', half].join('-of-')
const halves = ['the-id', 'the-slug', 'the-title', 'the-category', 'the-description']

let store: QueryTables
let app: TestApp
let credentials: Credentials
let isAway: boolean
/** While it is set, statements of requests answer only when it ends. */
let hanging: PromiseWithResolvers<never> | undefined
/** How many of them wait for that. */
let hung: number
/** How many statements have read rows by id. */
let rowReads: number
/** Ends the pause of the loop that forgets. */
let wake: (() => void) | undefined
const clock = testClock(Date.now())

const isLook = ({ query }: Statement) => query.includes('AS purges')

async function start(): Promise<void> {
  isAway = false
  hanging = undefined
  hung = 0
  rowReads = 0
  await store.clear()
  app = await startTestApp({
    databases: store.databases,
    clock,
    options: { PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX: 1_000, statementsMax: 1 },
    tables: {
      rows: <Row>(statement: Statement) => {
        if (isAway) {
          // The statements of the index are slow to fail.
          if (!isLook(statement)) clock.advance(80_000)
          return Promise.reject(new Error('away'))
        }
        if (hanging && !isLook(statement)) {
          hung++
          return hanging.promise
        }
        if (statement.query.includes('{ids:Array(String)}')) rowReads++
        return store.tables.rows<Row>(statement)
      },
    },
    overrides: { forgets: true },
    runtime: {
      monotonicMs: clock.now,
      // Log lines may have slugs.
      logger: pino({ level: 'silent' }),
      sleep: (_, signal) =>
        new Promise(resolve => {
          wake = resolve
          signal?.addEventListener('abort', () => resolve(), { once: true })
        }),
    },
  })
  credentials = app.issue()
}

/** Lets this time pass, in steps after which the loop goes on. */
async function pass(ms: number, stepMs = forgetMs): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await expect.poll(() => wake, { timeout: 20_000, interval: 1 }).toBeDefined()
    const go = wake
    wake = undefined
    clock.advance(stepMs)
    go?.()
  }
  await expect.poll(() => wake, { timeout: 20_000, interval: 1 }).toBeDefined()
}

async function put(isDeleted: boolean): Promise<void> {
  const [id = '', slug = '', title = '', category = '', description = ''] = halves.map(whole)
  const updated_at = new Date().toISOString().replace('T', ' ').replace('Z', '')
  const rows = [{ ...campaignRow(id), slug, title, category, description, updated_at }, campaignRow('kept')]
  await store.putCampaigns(isDeleted ? rows.slice(0, 1).map(row => ({ ...row, is_deleted: 1 })) : rows)
}

/** Sends a request, and throws its answer away. Returns the snapshot of a list. */
async function ask(path: string): Promise<string | null> {
  // A connection keeps its last request.
  const response = await app.get(path, credentials, { connection: 'close' })
  await response.arrayBuffer()
  expect(response.status).toBe(200)
  return response.headers.get('x-snapshot-id')
}

/** Asks until the campaign is in every place that may keep it. Returns the snapshot of the lists. */
async function askForEverything(): Promise<string | null> {
  let limit = 1
  // Rows are kept once the index is loaded.
  await expect
    .poll(async () => {
      const before = rowReads
      await ask(`/projects?limit=${++limit}`)
      return rowReads - before
    })
    .toBe(0)
  for (let times = 0; times < 3; times++) await ask(`/projects/${whole('the-slug')}`)
  return ask('/projects?limit=2')
}

/** Which of these texts the heap of this process contains. */
async function inHeap(texts: readonly string[]): Promise<string[]> {
  // Of `fetch` in the tests.
  performance.clearResourceTimings()
  const found = new Set<string>()
  let tail = ''
  for await (const chunk of getHeapSnapshot()) {
    const part = tail + String(chunk)
    for (const half of texts) if (part.includes(whole(half))) found.add(half)
    tail = part.slice(-100)
  }
  return texts.filter(half => found.has(half))
}

/** A connection to ClickHouse may keep its last statement for the seconds until it is closed. */
const untilGone = (texts: readonly string[]) =>
  expect.poll(() => inHeap(texts), { timeout: 100_000, interval: 1_000 }).toEqual([])

// A description is only in the bytes of an answer, which are not part of the heap.
const kept = halves.slice(0, 4)

describe('the texts of a campaign', { timeout: 300_000 }, () => {
  beforeAll(async () => {
    store = await openQueryTables()
  })
  afterAll(() => store?.close())
  beforeEach(start)
  afterEach(() => app.close())

  test('leave the memory of a query process within five minutes of its deletion, without any request', async () => {
    await put(false)
    await askForEverything()
    expect(await inHeap(kept)).toEqual(kept)
    await put(true)
    await pass(fiveMinutesMs)
    await untilGone(kept)
    // The bytes of an answer are not in memory that other answers, or a constant, share and keep.
    expect(Buffer.from('an answer').buffer.byteLength).toBe('an answer'.length)
  })

  test('leave it within five minutes while ClickHouse is away', async () => {
    await put(false)
    await askForEverything()
    isAway = true
    const awayAt = clock.now()
    while (clock.now() + forgetMs - awayAt <= fiveMinutesMs) await pass(forgetMs)
    expect(clock.now() - awayAt).toBeLessThanOrEqual(fiveMinutesMs)
    await untilGone(kept)
  })

  // On shards: test/integration/shards/services.test.ts.
  test('leave it at once after a purge, and a walk goes on in its snapshot', async () => {
    await put(false)
    const snapshot = await askForEverything()
    await put(true)
    await writePurge(store.tables, store.databases, 'the moment of a purge')
    await pass(purgeLookMs, purgeLookMs)
    // Its id stays in the list of the walk.
    const texts = kept.slice(1)
    await untilGone(texts)
    expect(await ask('/projects?limit=2')).toBe(snapshot)
    await untilGone(texts)
  })

  test('leave it at once after a purge while statements of requests hang', async () => {
    await put(false)
    await askForEverything()
    await put(true)
    hanging = Promise.withResolvers()
    const asked = app.get('/projects/of-nobody', credentials)
    await expect.poll(() => hung).toBe(1)
    await writePurge(store.tables, store.databases, 'the moment of a purge')
    // Here the index is refreshed, too.
    await pass(2 * forgetMs)
    await untilGone(['the-title'])
    hanging.reject(new Error('away'))
    await asked
  })
})

test('statistics that are kept ahead of requests are forgotten at a purge', async () => {
  let [total_creators, purges] = [1, 0]
  const { tables } = fakeTables({
    stats: () => [{ ...statsRow, total_creators, total_pledges: aheadPledgesMin }],
  })
  const app = await startTestApp({
    tables: {
      rows: async <Row>(statement: Statement) =>
        isLook(statement) ? ([{ purges }] as Row[]) : tables.rows<Row>(statement),
    },
    overrides: { forgets: true, keepsAhead: true },
  })
  const credentials = app.issue()
  const creators = async () => {
    const response = await app.get('/stats', credentials)
    return ((await response.json()) as z.infer<typeof statsBodySchema>).data.total_creators
  }
  expect(await creators()).toBe(1)
  total_creators = 2
  expect(await creators()).toBe(1)
  purges = 1
  await expect.poll(creators, { timeout: 10_000 }).toBe(2)
  await app.close()
})

test('an outage of a minute is at most two lines of the log', async () => {
  const ended = Promise.withResolvers<void>()
  let [looks, lines] = [0, 0]
  const forgetting = startForgetting(
    [],
    { rows: () => Promise.reject(new Error('away')) },
    generationOf({ base: 'query_model', views: 'query_views' }, 1),
    {
      monotonicMs: () => looks * purgeLookMs,
      sleep: async () => {
        if (++looks === 60) ended.resolve(forgetting.close())
      },
      logger: pino({}, { write: () => void lines++ }),
    },
  )
  await ended.promise
  expect(lines).toBeGreaterThan(0)
  expect(lines).toBeLessThanOrEqual(2)
})
