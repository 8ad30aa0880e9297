/** The list index compared with ClickHouse: it gives the same lists as the statement, whatever happens to campaigns. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sorts } from '../../../../contracts/api/parameters.ts'
import type { Project } from '../../../../contracts/api/schemas.ts'
import { writtenAt } from '../../../../services/query/campaigns/campaign-fields.ts'
import { createCachedCampaignRows } from '../../../../services/query/campaigns/campaign-rows.ts'
import {
  createIndexListSource,
  createSqlListSource,
} from '../../../../services/query/lists/campaign-lists.ts'
import { type IdList, joinedIdList } from '../../../../services/query/lists/id-list.ts'
import {
  createListFollower,
  type ListFollower,
  type ListFollowerOptions,
} from '../../../../services/query/lists/list-follower.ts'
import type { ListQuery } from '../../../../services/query/lists/list-statements.ts'
import type { Statement, Tables } from '../../../../services/tables/port.ts'
import {
  type CampaignRow,
  campaignRow,
  openQueryTables,
  type QueryTables,
} from '../../../support/query/tables.ts'

const minuteMs = 60_000
const clock = { monotonicMs: () => performance.now() }
let store: QueryTables
let statements: string[]
let tables: Pick<Tables, 'rows'>

beforeAll(async () => {
  store = await openQueryTables()
  tables = {
    rows: <Row>(statement: Statement) => {
      statements.push(statement.query)
      return store.tables.rows<Row>(statement)
    },
  }
})
afterAll(() => store.close())
beforeEach(async () => {
  await store.clear()
  statements = []
})

function follow(options: Partial<ListFollowerOptions> = {}, time = clock): ListFollower {
  // Refreshed for every list, and loaded in several chunks.
  const always = { freshMs: 0, reloadMs: 0, chunkRows: 3, countMs: 0 }
  const all = { statementMsMax: 10_000, campaignsMax: 1_000, ...always, ...options }
  return createListFollower(tables, store.databases, all, thrown, time)
}

function thrown(error: unknown): never {
  throw error
}

async function loaded(follower: ListFollower) {
  await expect.poll(() => follower.current()).toBeDefined()
  const followed = await follower.current()
  if (!followed) throw new Error('the index is gone')
  return followed
}

/** Inserts rows as the fold would: changed at this moment of ClickHouse's clock. */
async function put(...rows: CampaignRow[]): Promise<void> {
  const updated_at = timestamp(Date.now())
  await store.putCampaigns(rows.map(row => ({ ...row, updated_at })))
  // As the leader of the fold does between two statements.
  await store.tables.run({
    query: `INSERT INTO ${store.databases.read}.watermarks (shard, reached) SELECT '', now64(3, 'UTC')`,
  })
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '')
}

const allOf = (list: IdList) => list.page(list.total, 0)

const everything: ListQuery = { status: null, category: null, sort: 'newest', updatedSince: null }

describe('the list index', () => {
  it('gives the same lists as the statement, in the same order, whatever changes', async () => {
    // Refreshed after each change, and then for each order. A refresh for each list would ask the same four more times.
    let now = 0
    const follower = follow({ freshMs: 1 }, { monotonicMs: () => now })
    const sql = createSqlListSource(store.tables, store.databases, { keptMs: 0, msMax: 10_000 })
    const fallback = { select: () => Promise.reject(new Error('there is no index')) }
    const indexed = createIndexListSource(follower, fallback, clock)
    await put(campaignRow('first'))
    await loaded(follower)
    const dates = fc.option(fc.integer({ min: -2, max: 2 }).map(days => timestamp(dayAt(days))))
    // Few values, so that many are equal. Some ids sort differently by bytes and by UTF-16 units.
    const campaign = fc
      .record({
        id: fc.constantFrom('a', 'B', 'é', '\uffee', '😀', 'c1', 'c10', 'c2', 'd'),
        status: fc.constantFrom('LIVE', 'FUNDED', 'FAILED', 'CANCELLED'),
        category: fc.constantFrom('Games', 'Art'),
        launch_date: dates,
        end_date: dates,
        pledged_platform_amount: fc.constantFrom('0', '10.0001', '10.0002', '123456789012.3456'),
        backer_count: fc.integer({ min: 0, max: 2 }),
        is_deleted: fc.constantFrom<0 | 1>(0, 0, 0, 1),
      })
      .map(({ id, ...fields }) => campaignRow(id, fields))
    const steps = fc.array(fc.uniqueArray(campaign, { selector: row => row.campaign_id, maxLength: 6 }), {
      minLength: 1,
      maxLength: 5,
    })
    await fc.assert(
      fc.asyncProperty(steps, fc.constantFrom(null, 'Games', 'Nothing'), async (changes, category) => {
        for (const rows of changes) {
          const before = Date.now()
          await put(...rows)
          const { digest: ofAll } = await sql.select(everything)
          expect(ofAll).toMatch(/^\d+-[0-9a-f]{16}$/)
          const filters = [
            { status: null, updatedSince: null },
            { status: 'LIVE', updatedSince: null },
            { status: 'FUNDED', updatedSince: before - minuteMs },
            { status: null, updatedSince: before },
            { status: null, updatedSince: before + 1 },
          ] as const
          for (const query of sorts.flatMap(sort => filters.map(filter => ({ sort, category, ...filter })))) {
            if (query.status === null && query.updatedSince === null) now++
            const { asOf, ids: found, digest } = await indexed.select(query)
            const { asOf: wantedAsOf, ids: wanted } = await sql.select(query)
            expect(digest).toBe(category === null && query.status === null ? ofAll : undefined)
            expect(allOf(found), JSON.stringify(query)).toEqual(allOf(wanted))
            expect(found.total).toBe(wanted.total)
            expect(Date.parse(wantedAsOf) - Date.parse(asOf)).toBeLessThan(10_000)
          }
        }
      }),
      { numRuns: 6, seed: 20_260_301 },
    )
  }, 240_000)

  it('has the watermark that was written last when it was read, and not the time of the reading', async () => {
    await put(campaignRow('a'))
    const before = Date.now()
    const { readAt, asOf } = await loaded(follow())
    expect(asOf).toBeLessThanOrEqual(readAt)
    expect(asOf).toBeGreaterThan(before - minuteMs)
    expect(readAt).toBeGreaterThanOrEqual(before)
    expect(readAt).toBeLessThanOrEqual(Date.now())
  })

  it('is loaded again if campaigns changed without a recorded change', async () => {
    const follower = follow()
    await put(...['a', 'b', 'c', 'd'].map(id => campaignRow(id)))
    const { index } = await loaded(follower)
    expect(index.size).toBe(4)
    await store.clear()
    await store.putCampaigns([campaignRow('a')])
    await expect.poll(async () => (await follower.current())?.index.size).toBe(1)
  })

  it('is refreshed before a list has to wait for that, and a failure is not thrown at a list that need not wait', async () => {
    let time = 0
    let isAway = false
    const follower = createListFollower(
      {
        rows: <Row>(statement: Statement) =>
          isAway ? Promise.reject(new Error('away')) : store.tables.rows<Row>(statement),
      },
      store.databases,
      { statementMsMax: 10_000, campaignsMax: 10, freshMs: 1_000 },
      () => undefined,
      { monotonicMs: () => time },
    )
    await put(campaignRow('a'))
    await loaded(follower)
    await put(campaignRow('b'))
    time += 600
    expect((await follower.current())?.index.size).toBe(1)
    await expect.poll(async () => (await follower.current())?.index.size).toBe(2)
    isAway = true
    time += 600
    expect(await follower.current()).toBeDefined()
    time += 600
    await expect(follower.current()).rejects.toThrow('away')
  })

  it('is refreshed if a list has a later watermark than the index', async () => {
    const follower = follow({ freshMs: 10 * minuteMs })
    await put(campaignRow('a'))
    const { asOf } = await loaded(follower)
    await put(campaignRow('b'))
    const later = await follower.current(asOf + 1)
    expect(later?.index.size).toBe(2)
    // A list must not claim a moment in the future.
    expect(await follower.current(Date.now() + minuteMs)).toBeUndefined()
  })

  it('does not exist if there are too many campaigns, and ClickHouse computes the lists', async () => {
    const follower = follow({ campaignsMax: 3 })
    await put(...['a', 'b', 'c'].map(id => campaignRow(id)))
    await loaded(follower)
    await put(campaignRow('d'))
    expect(await follower.current()).toBeUndefined()
    const fallback = { select: async () => ({ ids: joinedIdList('from ClickHouse', 1), asOf: '' }) }
    const source = createIndexListSource(follower, fallback, clock)
    expect(allOf((await source.select(everything)).ids)).toEqual(['from ClickHouse'])
  })
})

describe('the rows of pages', () => {
  const now = () => new Date(Date.now() - minuteMs).toISOString()
  const rowStatements = () => statements.filter(query => query.includes('{ids:Array(String)}')).length

  async function openRows() {
    const follower = follow()
    await put(campaignRow('a', { title: 'A' }), campaignRow('b', { title: 'B' }))
    await loaded(follower)
    const options = { statementMsMax: 10_000, bytesMax: 1_000_000 }
    const rows = createCachedCampaignRows(tables, store.databases, follower, options, clock)
    return async (ids: string[]) =>
      (await rows.read(ids, now())).map(row => JSON.parse(writtenAt(row, Date.now())) as Project)
  }

  it('are read again when their campaigns have changed, and those alone', async () => {
    const read = await openRows()
    const first = await read(['a', 'b'])
    expect(await read(['b'])).toEqual([first[1]])
    expect(rowStatements()).toBe(1)
    await put(campaignRow('b', { title: 'B2' }))
    expect((await read(['b', 'a'])).map(row => row.title)).toEqual(['B2', 'A'])
    expect(rowStatements()).toBe(2)
  })

  it('are not shown if their campaign is no longer public', async () => {
    const read = await openRows()
    await read(['a', 'b'])
    await put(campaignRow('a', { is_deleted: 1 }))
    expect((await read(['a', 'b'])).map(row => row.title)).toEqual(['B'])
  })

  it('that the schema refuses fail their own pages, and not those that are read with them', async () => {
    const read = await openRows()
    await put(campaignRow('b', { status: 'DRAFT' }))
    const [refused, shown] = await Promise.allSettled([read(['b']), read(['a'])])
    expect(refused).toMatchObject({ reason: { message: 'the row of campaign b cannot be shown' } })
    expect(shown).toMatchObject({ value: [{ title: 'A' }] })
    await put(campaignRow('b', { title: 'B2' }))
    expect((await read(['a', 'b'])).map(row => row.title)).toEqual(['A', 'B2'])
  })

  it('that many requests miss are read together', async () => {
    const read = await openRows()
    const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => read([n % 2 ? 'a' : 'b'])))
    expect(answers.map(([row]) => row?.title)).toEqual(answers.map((_, n) => (n % 2 ? 'A' : 'B')))
    expect(rowStatements()).toBeLessThan(5)
  })
})

// Half a day from each of these moments, so that no campaign ends during a run.
const startedAt = Date.now()

function dayAt(days: number): number {
  return startedAt + (days + 0.5) * 86_400_000
}
