import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCampaignLists, idsOf, listKey, type Snapshot } from '../../../services/query/campaign-lists.ts'
import { createSqlListSource } from '../../../services/query/list-source.ts'
import type { ListQuery } from '../../../services/query/statements.ts'
import type { Statement } from '../../../services/shared/tables/port.ts'
import { testClock } from '../../support/query-app.ts'

function snapshotOf(ids: readonly string[]): Snapshot {
  const rest = { asOf: '', createdAt: 0, expiresAt: 0 }
  return { joinedIds: ids.join('/'), checkpoints: [0], total: ids.length, ...rest }
}

const newest: ListQuery = { status: null, category: null, sort: 'newest', updatedSince: null }

describe('the ids of a page', () => {
  it('are those of the list at these places, in whatever order pages are asked for', () => {
    const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }).filter(text => !text.includes('/'))
    const pages = fc.array(
      fc.record({ limit: fc.integer({ min: 1, max: 100 }), offset: fc.nat({ max: 1500 }) }),
    )
    fc.assert(
      fc.property(fc.array(id, { maxLength: 1200, size: 'max' }), pages, (ids, asked) => {
        const snapshot = snapshotOf(ids)
        for (const { limit, offset } of asked) {
          expect(idsOf(snapshot, limit, offset)).toEqual(ids.slice(offset, offset + limit))
        }
      }),
      { numRuns: 30 },
    )
  })

  it('are none beyond the end, however far', () => {
    expect(idsOf(snapshotOf(['a', 'b']), 50, 2)).toEqual([])
    expect(idsOf(snapshotOf(['a', 'b']), 50, Number.MAX_SAFE_INTEGER)).toEqual([])
    expect(idsOf(snapshotOf([]), 50, 0)).toEqual([])
  })
})

describe('the key of a list', () => {
  it('is the same for the same query, and tells all others apart', () => {
    const queries = fc.record<ListQuery>({
      status: fc.constantFrom(null, 'LIVE', 'FUNDED'),
      category: fc.option(fc.constantFrom('*', '=', ' ', 'a', 'a ', '* *', '1')),
      sort: fc.constantFrom('newest', 'most_funded'),
      updatedSince: fc.option(fc.constantFrom(0, 1, -1)),
    })
    fc.assert(
      fc.property(queries, queries, (a, b) => {
        expect(listKey(a) === listKey(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
      }),
    )
  })
})

describe('a snapshot', () => {
  function open(rows: (statement: Statement) => unknown[], snapshotBytesMax = 1_000_000) {
    const clock = testClock()
    const statements: Statement[] = []
    const source = createSqlListSource({
      tables: {
        rows: async <Row>(statement: Statement) => {
          statements.push(statement)
          return rows(statement) as Row[]
        },
      },
      databases: { model: 'm', views: 'v' },
      options: { commitHorizonMs: 5000, statementMsMax: 1000 },
    })
    const lists = createCampaignLists({
      source,
      options: { listCacheMs: 60_000, snapshotBytesMax },
      now: clock.now,
    })
    return { clock, lists, statements }
  }
  const row = { ids: 'a/b/c', total: 3, as_of: '2026-03-01 12:00:00.000' }
  const first = { limit: 2, offset: 0 }

  it('serves every page of its query for one cache period, and not a millisecond longer', async () => {
    const { clock, lists, statements } = open(() => [row])
    const page = await lists.page(newest, first)
    expect(page).toEqual({
      ids: ['a', 'b'],
      total: 3,
      asOf: '2026-03-01T12:00:00.000Z',
      createdAt: clock.now(),
      expiresAt: clock.now() + 60_000,
    })
    clock.advance(59_999)
    expect(await lists.page(newest, { limit: 2, offset: 2 })).toEqual({ ...page, ids: ['c'] })
    expect(statements).toHaveLength(1)
    clock.advance(1)
    await lists.page(newest, first)
    expect(statements).toHaveLength(2)
  })

  it('is taken once for all who ask while it is taken', async () => {
    const { lists, statements } = open(() => [row])
    await Promise.all([lists.page(newest, first), lists.page(newest, { limit: 2, offset: 2 })])
    expect(statements).toHaveLength(1)
  })

  it('is one for each query', async () => {
    const { lists, statements } = open(() => [row])
    await lists.page(newest, first)
    await lists.page({ ...newest, status: 'LIVE' }, first)
    expect(statements).toHaveLength(2)
  })

  it('is served, though not kept, where the bound is too small for it', async () => {
    const { lists, statements } = open(() => [row], 10)
    expect((await lists.page(newest, first)).total).toBe(3)
    await lists.page(newest, first)
    expect(statements).toHaveLength(2)
  })

  it('is not made of a failed statement', async () => {
    const answers = [() => Promise.reject(new Error('away'))]
    const { lists } = open(() => {
      if (answers.pop()) throw new Error('away')
      return [row]
    })
    await expect(lists.page(newest, first)).rejects.toThrow('away')
    expect((await lists.page(newest, first)).total).toBe(3)
  })
})
