import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listKey } from '../../../../services/query/lists/campaign-lists.ts'
import { type IdList, joinedIdList, slotIdList } from '../../../../services/query/lists/id-list.ts'
import type { ListQuery } from '../../../../services/query/lists/list-statements.ts'

/** The same ids in each form. */
const forms: Record<string, (ids: readonly string[]) => IdList> = {
  joined: ids => joinedIdList(ids.join('/'), ids.length),
  slots: ids =>
    slotIdList(
      Uint32Array.from(ids, (_, slot) => slot),
      slot => ids[slot] ?? '',
    ),
}

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

it('the key of a list is the same for equal queries, and differs for all others', () => {
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
