/** Lists of the index compared with filtering and sorting plain objects. */
import { expect, test } from 'vitest'
import { sorts } from '../../../../contracts/api/parameters.ts'
import { createListIndex, slugCodeOf } from '../../../../services/query/lists/list-index.ts'
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
    slug_codes: campaigns.map(({ id }) => slugCodeOf(id)),
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
