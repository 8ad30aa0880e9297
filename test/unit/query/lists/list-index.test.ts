import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createListIndex, slugCodeOf } from '../../../../services/query/lists/list-index.ts'
import type { EntriesRow, ListQuery } from '../../../../services/query/lists/list-statements.ts'

const newest: ListQuery = { status: null, category: null, sort: 'newest', updatedSince: null }

function entriesOf(ids: readonly string[], updated = 0): EntriesRow {
  const all = <T>(value: T) => ids.map(() => value)
  return {
    slug_codes: ids.map(slugCodeOf),
    ...{ ids: [...ids], statuses: all('LIVE'), categories: all('Games'), launch_dates: all(0) },
    ...{ end_dates: all(0), pledged: all(0), backers: all(0), updates: all(updated) },
  }
}

const pause = async () => undefined

describe('a list of the index', () => {
  it('takes at most four bytes a campaign, whatever its ids look like, and none for ids that only a page needs', async () => {
    const index = createListIndex({ sizeExpected: 10_000 })
    index.put(entriesOf(Array.from({ length: 10_000 }, (_, n) => `${'campaign '.repeat(20)}${n}`)))
    const list = await index.select({ ...newest, updatedSince: -1 }, 0, pause)
    expect(list.total).toBe(10_000)
    expect(list.bytes).toBeLessThanOrEqual(4 * list.total)
  })

  it('keeps its total, its order and its places while campaigns change, come and go', async () => {
    const id = fc.constantFrom(...'abcdefghijkl')
    const step = fc.record({ put: fc.uniqueArray(id), removed: fc.uniqueArray(id), updated: fc.nat(9) })
    const steps = fc.array(step, { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(id),
        steps,
        fc.constantFrom(null, 0, 5),
        async (first, changes, updatedSince) => {
          const index = createListIndex({ sizeExpected: 0 })
          index.put(entriesOf(first, 5))
          const list = await index.select({ ...newest, updatedSince }, 0, pause)
          const wanted = list.page(100, 0)
          expect(wanted).toEqual(first.toSorted())
          const removed = new Set<string>()
          for (const change of changes) {
            index.remove(change.removed)
            for (const gone of change.removed) removed.add(gone)
            index.put(entriesOf(change.put, change.updated))
            expect(list.total).toBe(first.length)
            for (const [place, campaign] of wanted.entries()) {
              // A campaign that was removed may come back to the same place, and to no other.
              const allowed = removed.has(campaign) ? [[], [campaign]] : [[campaign]]
              expect(allowed).toContainEqual(list.page(1, place))
            }
          }
        },
      ),
    )
  })

  it('is computed in short parts, and has each campaign of its start once if the index changes between them', async () => {
    const ids = Array.from({ length: 100_000 }, (_, n) => `c${String(n).padStart(6, '0')}`)
    for (const sort of ['newest', 'ending_soon'] as const) {
      const index = createListIndex({ sizeExpected: ids.length })
      index.put(entriesOf(ids, 5))
      index.put(entriesOf(['older'], 1))
      let pauses = 0
      const list = await index.select({ ...newest, sort, updatedSince: 5 }, -1, async () => {
        pauses++
        // Grows the columns, changes campaigns before and behind the place, and removes one.
        if (pauses === 1)
          index.put(
            entriesOf(
              Array.from({ length: 30_000 }, (_, n) => `added ${n}`),
              6,
            ),
          )
        index.put({ ...entriesOf([ids[1] ?? '', ids.at(-2) ?? ''], 7), statuses: ['FUNDED', 'FUNDED'] })
        index.remove([ids[100] ?? ''])
      })
      expect(pauses).toBeGreaterThan(2)
      expect(list.total).toBe(ids.length)
      const listed = list.page(list.total, 0)
      expect(listed.toSorted()).toEqual(ids.filter(id => id !== ids[100]))
      if (sort === 'newest') expect(listed).toEqual(listed.toSorted())
    }
  })
})
