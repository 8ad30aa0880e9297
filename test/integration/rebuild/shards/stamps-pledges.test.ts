/**
 * Pledges, when the stamps of other tables are taken over: none that the other tables have deleted or cancelled comes back, and none is
 * lost without a word.
 *
 * PLEDGEVIEW_TEST_SEED repeats the worlds.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { intBetween, randomOf } from '../../../../services/demo/random.ts'
import { type ModelTables, openModelTables } from '../../../support/model-tables.ts'
import { pledgeEvent, pledgeTombstone } from '../../../support/sample-events.ts'
import { type Fate, openStampsWorld } from '../../../support/stamps-world.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000 })

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20191224'
let model: ModelTables

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

type Step = number | `cancelled ${number}` | 'deleted'
/** What happened to a pledge: there, and here. */
const fates = {
  same: [[1], [1]],
  'deleted on both': [
    [1, 'deleted'],
    [1, 'deleted'],
  ],
  'cancelled since': [[1], [1, 'cancelled 2']],
  'deleted since': [[1], [1, 'deleted']],
  'counts again': [['cancelled 2'], [3]],
  'here alone': [[], [1]],
  'deletion lost': [[1, 'deleted'], [1]],
  'cancellation lost': [[1, 'cancelled 2'], [1]],
  'missing here': [[1], []],
} as const satisfies Record<string, readonly [there: readonly Step[], here: readonly Step[]]>
type PledgeFate = keyof typeof fates

const campaigns = ['c1', 'c2', 'c3']
const harmless: readonly PledgeFate[] = [
  'same',
  'deleted on both',
  'cancelled since',
  'deleted since',
  'counts again',
  'here alone',
]

function eventOf(campaign_id: string, pledge_id: string, step: Step): ChangeEvent {
  if (step === 'deleted') return pledgeTombstone(campaign_id, pledge_id)
  if (typeof step === 'number') return pledgeEvent({ campaign_id, pledge_id, version: step })
  return pledgeEvent({
    campaign_id,
    pledge_id,
    version: Number(step.slice('cancelled '.length)),
    status: 'CANCELLED',
  })
}

/** Campaigns that are the same, with some pledges of harmless fates and those that are given. */
async function openWorld(number: number, given: readonly (readonly [string, PledgeFate])[]) {
  const world = await openStampsWorld(model, new Map<string, Fate>(campaigns.map(id => [id, 'same'])))
  const random = randomOf(`${seed}/pledges/${number}`)
  const some = Array.from({ length: intBetween(random, 5, 20) }, (_, n) => {
    const fate = harmless[intBetween(random, 0, harmless.length - 1)] as PledgeFate
    return [`p${n}`, fate] as const
  })
  const all = [...some, ...given].map(
    ([id, fate]) => [campaigns[intBetween(random, 0, campaigns.length - 1)] as string, id, fate] as const,
  )
  for (const [side, index] of [
    [world.there, 0],
    [world.here, 1],
  ] as const) {
    await side.ingest(all.flatMap(([of, id, fate]) => fates[fate][index].map(step => eventOf(of, id, step))))
    await side.fold()
  }
  return world
}

test.each([1, 2, 3])('world %i: what has changed since is taken over, whatever it is', async number => {
  expect(await (await openWorld(number, [])).take()).toMatchObject({ missing: 0 })
})

test.each(['deletion lost', 'cancellation lost'] as const)('a pledge does not come back: %s', async fate => {
  const world = await openWorld(4, [['back', fate]])
  const refusal = /^pledge back of c\d is shown here, but deleted, hidden or revoked/
  await expect(world.take({ acceptsLoss: true })).rejects.toThrow(refusal)
})

test('pledges that are missing here are counted, and go on only if that is accepted', async () => {
  const lost = Array.from({ length: 40 }, (_, n) => [`lost${n}`, 'missing here'] as const)
  const world = await openWorld(5, lost)
  await expect(world.take()).rejects.toThrow(
    /\d+ pledges of c\d.* in the other tables, but missing or older here/,
  )
  // A campaign counts once.
  expect(await world.take({ acceptsLoss: true })).toMatchObject({ missing: campaigns.length })
})
