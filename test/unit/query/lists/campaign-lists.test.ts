import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCache } from '../../../../services/query/cache/cache.ts'
import {
  createCampaignLists,
  createRemovals,
  createSqlListSource,
  listKey,
  snapshots as snapshotKind,
} from '../../../../services/query/lists/campaign-lists.ts'
import { type IdList, joinedIdList, slotIdList } from '../../../../services/query/lists/id-list.ts'
import type { ListQuery } from '../../../../services/query/lists/list-statements.ts'
import { generationOf } from '../../../../services/tables/generations.ts'
import type { Statement } from '../../../../services/tables/port.ts'
import { testClock } from '../../../support/query/app.ts'

/** The same ids in each form. */
const forms: Record<string, (ids: readonly string[]) => IdList> = {
  joined: ids => joinedIdList(ids.join('/'), ids.length),
  slots: ids =>
    slotIdList(
      Uint32Array.from(ids, (_, slot) => slot),
      slot => ids[slot] ?? '',
    ),
}

const newest: ListQuery = { status: null, category: null, sort: 'newest', updatedSince: null }

describe.each(Object.entries(forms))('the ids of a page, %s', (_, listOf) => {
  it('are correct in whatever order the pages are read', () => {
    const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }).filter(text => !text.includes('/'))
    const pages = fc.array(
      fc.record({ limit: fc.integer({ min: 1, max: 100 }), offset: fc.nat({ max: 1500 }) }),
    )
    fc.assert(
      fc.property(fc.array(id, { maxLength: 1200, size: 'max' }), pages, (ids, asked) => {
        const list = listOf(ids)
        for (const { limit, offset } of asked) {
          expect(list.page(limit, offset)).toEqual(ids.slice(offset, offset + limit))
        }
      }),
      { numRuns: 30 },
    )
  })

  it('are the same after a list was encoded and decoded, also if some campaigns have left it', async () => {
    const ids = Array.from({ length: 20_000 }, (_, n) => (n % 7 === 3 ? '' : `é${n}`))
    const list = listOf(ids)
    const copy = joinedIdList(String(await list.encode()), list.total)
    for (const offset of [0, 2, 8_190, 19_990]) {
      expect(copy.page(20, offset)).toEqual(ids.slice(offset, offset + 20).filter(id => id !== ''))
      expect(copy.page(20, offset)).toEqual(list.page(20, offset))
    }
    expect(String(await listOf([]).encode())).toBe('')
  })
})

describe('the key of a list', () => {
  it('is the same for equal queries, and differs for all others', () => {
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
    let snapshots = 0
    const tables = {
      rows: async <Row>(statement: Statement) => {
        statements.push(statement)
        return rows(statement) as Row[]
      },
    }
    const databases = generationOf({ base: 'm', views: 'v' }, 1)
    const source = {
      ...createSqlListSource(tables, databases, 1000),
      removals: createRemovals(tables, databases, { keptMs: 1, msMax: 1000 }),
    }
    const cache = createCache(snapshotKind, { bytesMax: snapshotBytesMax, now: clock.now })
    const lists = createCampaignLists(source, cache, {
      listCacheMs: 60_000,
      newSnapshotId: () => `snapshot ${++snapshots}`,
      now: clock.now,
    })
    return { clock, lists, statements }
  }
  const row = { ids: 'a/b/c', total: 3, as_of: '2026-03-01 12:00:00.000' }
  const first = { limit: 2, offset: 0 }

  it('has another id than the one before and than that of another query, with the same watermark', async () => {
    const { clock, lists } = open(() => [row])
    const pages = [await lists.page(newest, first), await lists.page({ ...newest, status: 'LIVE' }, first)]
    clock.advance(60_000)
    pages.push(await lists.page(newest, first))
    expect(new Set(pages.map(({ asOf }) => asOf)).size).toBe(1)
    expect(new Set(pages.map(({ snapshotId }) => snapshotId)).size).toBe(3)
  })
})
