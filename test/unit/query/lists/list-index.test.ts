/** The lists of the index: compared with filtering and sorting plain objects, and while campaigns change. */
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { sorts } from '../../../../contracts/api/parameters.ts'
import { createListIndex } from '../../../../services/query/lists/list-index.ts'
import { type EntriesRow, type ListQuery, noDate } from '../../../../services/query/lists/list-statements.ts'
import { randomOf } from '../../../support/runner/random.ts'

interface Campaign {
  id: string
  status: string
  category: string
  launch: number
  end: number
  pledged: number
  backers: number
  updated: number
}

const now = 100
const random = randomOf(3)
const below = (bound: number) => Math.floor(random() * bound)
const oneOf = <T>(values: readonly T[]): T => values[below(values.length)] as T

// Few values, so that many are equal.
function anyCampaign(updated: number): Campaign {
  return {
    id: `c${below(4_000)}`,
    status: oneOf(['LIVE', 'FUNDED', 'FAILED', 'CANCELLED']),
    category: oneOf(['Games', 'Art']),
    launch: oneOf([noDate, below(50)]),
    end: oneOf([noDate, below(50), now, now + below(50)]),
    pledged: below(1_000) / 10,
    backers: below(5),
    updated,
  }
}

/** A known campaign of which one field changes: one order moves, and the others stay as they are. */
function changedField(model: ReadonlyMap<string, Campaign>, moment: number): Campaign {
  const field = oneOf(['launch', 'end', 'pledged', 'backers', 'updated'] as const)
  return { ...oneOf([...model.values()]), [field]: anyCampaign(moment)[field] }
}

function entriesOf(campaigns: readonly Campaign[]): EntriesRow {
  return {
    ids: campaigns.map(({ id }) => id),
    statuses: campaigns.map(({ status }) => status),
    categories: campaigns.map(({ category }) => category),
    slug_codes: campaigns.map(({ id }) => crc32(id)),
    launch_dates: campaigns.map(({ launch }) => launch),
    end_dates: campaigns.map(({ end }) => end),
    pledged: campaigns.map(({ pledged }) => pledged),
    backers: campaigns.map(({ backers }) => backers),
    updates: campaigns.map(({ updated }) => updated),
  }
}

/** The ids that a list must have, in its order (contracts/api/README.md). */
function listed(campaigns: Iterable<Campaign>, query: ListQuery): string[] {
  const isRunning = ({ status, end }: Campaign) => status === 'LIVE' && end > now
  const keysOf = {
    newest: ({ launch }: Campaign) => [-launch],
    ending_soon: (campaign: Campaign) => {
      const { end } = campaign
      if (end === noDate) return [2, 0]
      return isRunning(campaign) ? [0, end] : [1, -end]
    },
    most_funded: ({ pledged }: Campaign) => [-pledged],
    most_backed: ({ backers }: Campaign) => [-backers],
  }[query.sort]
  return [...campaigns]
    .filter(({ status }) => query.status === null || status === query.status)
    .filter(({ category }) => query.category === null || category === query.category)
    .filter(({ updated }) => query.updatedSince === null || updated >= query.updatedSince)
    .map(campaign => ({ id: campaign.id, keys: keysOf(campaign) }))
    .sort((a, b) => {
      const differing = a.keys.findIndex((key, at) => key !== b.keys[at])
      if (differing < 0) return a.id < b.id ? -1 : 1
      return (a.keys[differing] ?? 0) - (b.keys[differing] ?? 0)
    })
    .map(({ id }) => id)
}

test('every list has its campaigns in its order, whatever changed before, whether it is long or short', async () => {
  const index = createListIndex({ sizeExpected: 0 })
  const model = new Map<string, Campaign>()
  let pauses = 0
  const pause = async () => void pauses++
  for (const [moment, changes] of [4_000, 40, 400, 100, 4_000, 30, ...Array(20).fill(1)].entries()) {
    const changed = new Map(
      Array.from({ length: changes }, () =>
        changes > 1 ? anyCampaign(moment) : changedField(model, moment),
      ).map(campaign => [campaign.id, campaign]),
    )
    index.put(entriesOf([...changed.values()]))
    for (const campaign of changed.values()) model.set(campaign.id, campaign)
    const departed = changes > 1 ? [...model.keys()].filter(() => below(50) === 0) : []
    if (changes > 1) index.remove([...departed, 'unknown'])
    for (const id of departed) model.delete(id)
    if (moment === 0) await index.prepare(pause)
    expect(index.size).toBe(model.size)
    for (const sort of sorts) {
      for (const status of [null, 'LIVE', 'FUNDED', 'DRAFT'] as ListQuery['status'][]) {
        const query = { sort, status, category: oneOf([null, 'Games', 'Nothing']) }
        for (const updatedSince of [null, -1, 5, moment, moment - 1, moment + 1]) {
          const list = await index.select({ ...query, updatedSince }, now, pause)
          const wanted = listed(model.values(), { ...query, updatedSince })
          expect(list.page(list.total, 0), JSON.stringify({ ...query, updatedSince })).toEqual(wanted)
        }
      }
    }
  }
  expect(pauses).toBeGreaterThan(0)
})

const newest: ListQuery = { status: null, category: null, sort: 'newest', updatedSince: null }
const same = { status: 'LIVE', category: 'Games', launch: 0, end: 0, pledged: 0, backers: 0 }
const alike = (ids: readonly string[], updated = 0) => entriesOf(ids.map(id => ({ ...same, id, updated })))
const pause = async () => undefined

describe('a list of the index', () => {
  it('takes at most four bytes a campaign, whatever its ids look like, and none for ids that only a page needs', async () => {
    const index = createListIndex({ sizeExpected: 10_000 })
    index.put(alike(Array.from({ length: 10_000 }, (_, n) => `${'campaign '.repeat(20)}${n}`)))
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
          index.put(alike(first, 5))
          const list = await index.select({ ...newest, updatedSince }, 0, pause)
          const wanted = list.page(100, 0)
          expect(wanted).toEqual(first.toSorted())
          const removed = new Set<string>()
          for (const change of changes) {
            index.remove(change.removed)
            for (const gone of change.removed) removed.add(gone)
            index.put(alike(change.put, change.updated))
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
    const added = Array.from({ length: 30_000 }, (_, n) => `added ${n}`)
    for (const sort of ['newest', 'ending_soon'] as const) {
      const index = createListIndex({ sizeExpected: ids.length })
      index.put(alike(ids, 5))
      index.put(alike(['older'], 1))
      let pauses = 0
      const list = await index.select({ ...newest, sort, updatedSince: 5 }, -1, async () => {
        pauses++
        // Grows the columns, changes campaigns before and behind the place, and removes one.
        if (pauses === 1) index.put(alike(added, 6))
        index.put({ ...alike([ids[1] ?? '', ids.at(-2) ?? ''], 7), statuses: ['FUNDED', 'FUNDED'] })
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
