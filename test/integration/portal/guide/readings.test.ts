/** What the first page and the page for data teams read, from real tables, and that opening them is no way to load the tables. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readExamples } from '../../../../services/portal/guide/data-examples.ts'
import {
  createDataAnswers,
  createDataPictures,
  createLiveState,
  type LiveState,
} from '../../../../services/portal/guide/readings.ts'
import { createFreshness, type Minutes } from '../../../../services/portal/status/freshness.ts'
import { statusContent } from '../../../../services/portal/status/status-page.ts'
import type { Runtime } from '../../../../services/runtime/runtime.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import { testClock } from '../../../support/query/app.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../../support/query/tables.ts'

let store: QueryTables
beforeAll(async () => {
  store = await openQueryTables()
  await store.putCampaigns([
    campaignRow('a', { category: 'Art', status: 'FUNDED', pledged_platform_amount: '10.5' }),
    campaignRow('b', { category: 'Art', status: 'FAILED', pledged_platform_amount: '99' }),
    campaignRow('c', { category: 'Games', status: 'LIVE', pledged_platform_amount: '50' }),
  ])
})
afterAll(() => store?.close())

type Rows = Pick<Tables, 'rows'>['rows']

/** A reading on tables that count their statements and may be changed, with a clock that the test advances. */
function reading<Value>(
  create: (
    place: Pick<QueryTables, 'databases'> & { tables: Pick<Tables, 'rows'> },
    runtime: Pick<Runtime, 'monotonicMs' | 'logger'>,
  ) => () => Promise<Value>,
  rows: Rows = (...args) => store.tables.rows(...args),
) {
  const clock = testClock()
  const warnings: string[] = []
  const counted = { statements: 0, atOnce: 0, atOnceMost: 0 }
  const tables: Pick<Tables, 'rows'> = {
    async rows(...args) {
      counted.statements++
      counted.atOnceMost = Math.max(counted.atOnceMost, ++counted.atOnce)
      try {
        return await rows(...args)
      } finally {
        counted.atOnce--
      }
    },
  }
  const logger = { warn: (message: string) => warnings.push(message) } as unknown as Runtime['logger']
  const read = create({ tables, databases: store.databases }, { monotonicMs: clock.now, logger })
  /** What is read, once it is there: a busy machine may take longer than a page waits. */
  async function once(isThere: (value: Value) => boolean): Promise<Value> {
    for (;;) {
      const value = await read()
      if (isThere(value)) return value
      clock.advance(1)
    }
  }
  return { read, once, clock, counted, warnings }
}

test('the freshness of each minute is measured once, kept while it cannot be written, and told with its incidents', async () => {
  const clock = testClock()
  const minute = Math.floor(Date.now() / 60_000) * 60_000 - 3 * 3_600_000
  let status: LiveState['status'] = 'Up to date'
  let isAway = false
  const tables: Pick<Tables, 'rows' | 'insert'> = {
    rows: (...args) => store.tables.rows(...args),
    insert: (...args) => (isAway ? Promise.reject(new Error('away')) : store.tables.insert(...args)),
  }
  let isFolded = false
  let at = minute - 120_000
  const runtime = { now: () => at, monotonicMs: clock.now }
  const live = async () => ({ status, campaigns: 3, as_of: isFolded ? at : undefined })
  const place = { tables, databases: store.databases }
  const { measure, read } = createFreshness(place, live, runtime)
  const measured = async (minutes: number, now: LiveState['status']) => {
    status = now
    for (let n = 0; n < minutes; n++, at += 60_000) await measure().catch(() => undefined)
  }
  // The minute of the start, and one before the first fold.
  await measured(2, 'Behind')
  isFolded = true
  await measured(3, 'Up to date')
  await measured(1, 'Behind')
  await measured(1, 'Up to date')
  isAway = true
  await measured(90, 'Unavailable')
  isAway = false
  await measured(1, 'Behind')
  // The same minute again, and another portal that cannot read what this one can.
  at = minute - 60_000
  const other = createFreshness(place, async () => ({ ...(await live()), status: 'Unavailable' }), runtime)
  at = minute
  await other.measure()
  const { days, incidents } = await read()
  const sum = (name: keyof Minutes) => days.reduce((total, day) => total + day[name], 0)
  expect([sum('fresh'), sum('behind'), sum('away')]).toEqual([4, 2, 90])
  const began_at = minute + 5 * 60_000
  expect(incidents).toEqual([{ began_at, last_at: began_at + 90 * 60_000, behind: 1, away: 90 }])
  const { text } = statusContent({ status: 'Up to date', campaigns: 3, as_of: at }, { days, incidents })
  expect(text).toContain('4.16 % of 96 measured minutes were up to date.')
})

describe('the live state', () => {
  const live = (rows?: Rows) => reading(createLiveState, rows)

  test('is the public campaigns, up to when every change can be read, and whether that is long ago', async () => {
    const before = Date.now()
    await store.advanceWatermark()
    const state = await live().once(({ status }) => status !== 'Unavailable')
    expect(state).toMatchObject({ status: 'Up to date', campaigns: 3 })
    expect(Number(state.as_of)).toBeGreaterThanOrEqual(before)
    expect(Number(state.as_of)).toBeLessThanOrEqual(Date.now())
    await store.advanceWatermark({ shard: 'one', time: 'now64(3) - INTERVAL 1 HOUR' })
    const later = await live().once(({ status }) => status !== 'Unavailable')
    expect(later).toMatchObject({ status: 'Behind', campaigns: 3 })
  })

  test('before the first fold has no moment', async () => {
    const rows = async () => [{ campaigns: 0, as_of: 0, read_at: Date.now() }]
    expect((await live(rows as unknown as Rows).read()).as_of).toBeUndefined()
  })

  test('of tables that fail or do not answer is unavailable, without an error and without a long wait', async () => {
    const failing = live(() => Promise.reject(new Error('away')))
    const unavailable = { status: 'Unavailable', campaigns: undefined, as_of: undefined }
    expect(await failing.read()).toEqual(unavailable)
    expect(failing.warnings).toEqual([expect.stringContaining('away')])
    const silent: Rows = (_, { signal } = {}) =>
      new Promise((_answer, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    expect(await live(silent).read()).toEqual(unavailable)
  })

  test('is read once in ten seconds, however many people open the page', async () => {
    const { read, clock, counted } = live()
    await Promise.all(Array.from({ length: 50 }, read))
    clock.advance(9_999)
    await read()
    expect(counted.statements).toBe(1)
    clock.advance(1)
    await read()
    expect(counted.statements).toBe(2)
  })
})

describe('the pictures', () => {
  const pictures = (rows?: Rows) => {
    const made = reading(createDataPictures, rows)
    return { ...made, whole: () => made.once(({ about }) => about !== undefined) }
  }

  test('are read from the views', async () => {
    const { whole, warnings } = pictures()
    const { about, funding, categories, campaigns } = await whole()
    expect(warnings).toEqual([])
    expect(about).toMatchObject({ campaigns: 3 })
    expect(categories).toEqual([{ category: 'Art', ended: 2, funded: 1 }])
    expect(campaigns?.map(({ raised }) => raised)).toEqual([99, 50, 10.5])
    expect(funding).toEqual(expect.any(Array))
  })

  test('are read once a minute, again after two seconds without a campaign, and are the last ones while the tables do not answer', async () => {
    let state: 'empty' | 'there' | 'silent' = 'empty'
    const { read, whole, clock, counted } = pictures(async <T>(...args: Parameters<Tables['rows']>) => {
      if (state === 'silent') return new Promise(() => {})
      const rows = await store.tables.rows<T>(...args)
      return state === 'empty' ? rows.map(row => ({ ...row, campaigns: 0 })) : rows
    })
    await Promise.all(Array.from({ length: 50 }, read))
    expect((await whole()).about?.campaigns).toBe(0)
    const { statements } = counted
    state = 'there'
    expect((await read()).about?.campaigns).toBe(0)
    clock.advance(2_000)
    await expect.poll(async () => (await read()).about?.campaigns).toBe(3)
    expect(counted).toMatchObject({ statements: 2 * statements, atOnceMost: 1 })
    let last = await read()
    clock.advance(59_000)
    expect(await read()).toBe(last)
    expect(counted.statements).toBe(2 * statements)
    clock.advance(1_000)
    await expect.poll(read).not.toBe(last)
    expect(counted.statements).toBe(3 * statements)
    last = await read()
    state = 'silent'
    clock.advance(60_000)
    expect(await read()).toBe(last)
  })

  test('that cannot be read are missing, the rest is there, and they are tried again only after the minute', async () => {
    const { read, whole, counted, warnings } = pictures((statement, options) => {
      if (statement.query.includes('LIMIT 10')) throw new Error('too slow')
      return store.tables.rows(statement, options)
    })
    const first = await whole()
    expect(first.campaigns).toBeUndefined()
    expect(first.categories).toHaveLength(1)
    expect(warnings).toEqual([expect.stringContaining('the top campaigns cannot be read')])
    const { statements } = counted
    await read()
    expect(counted.statements).toBe(statements)
  })
})

test('the answers are those of the views; one that fails is missing; all are read again after five minutes', async () => {
  const { once, clock, counted, warnings } = reading(createDataAnswers, (statement, options) => {
    if (statement.query.startsWith('-- Which tags do well')) throw new Error('too slow')
    return store.tables.rows(statement, options)
  })
  const examples = readExamples(store.databases.views)
  const answers = await once(known => known.size === examples.length - 1)
  expect(answers.has('16-tags')).toBe(false)
  expect(answers.get('06-staff-picks')).toEqual([
    expect.objectContaining({ campaigns: 3, mean_raised: 53.17 }),
  ])
  expect(warnings).toEqual([expect.stringContaining('the answer to 16-tags cannot be read')])
  expect(counted).toMatchObject({ statements: examples.length, atOnceMost: 1 })
  clock.advance(300_000)
  await once(() => counted.statements === 2 * examples.length)
  expect(counted.atOnceMost).toBe(1)
})
