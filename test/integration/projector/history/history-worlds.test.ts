/**
 * The history in random worlds whose days end at any moment, on a real server: campaigns change, are hidden, shown and deleted,
 * fold workers are stopped, killed and lose statements, and the tables are rebuilt and rolled back. The history equals what a
 * visitor wrote down who looked at everything that was ever shown.
 *
 * PLEDGEVIEW_TEST_SEED repeats a world.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { dropOthers } from '../../../../services/generations/rebuilds.ts'
import { generationOf } from '../../../../services/tables/generation-log.ts'
import type { Databases, Tables } from '../../../../services/tables/port.ts'
import {
  isCampaignFold,
  isFoldRecord,
  lostConnection,
  obstructed,
} from '../../../support/clickhouse/faulty-tables.ts'
import { campaignEvent, pledgeEvent } from '../../../support/events/sample-events.ts'
import { openRebuildableModel, type RebuildableModel } from '../../../support/generations/rebuilds.ts'
import {
  expectedDays,
  expectedFunding,
  type Notes,
  withVisitor,
} from '../../../support/projector/history-visitor.ts'
import { createStampClock, dayMs, type StampClock } from '../../../support/projector/stamp-clock.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'
import {
  chance,
  intBetween,
  pick,
  pickWeighted,
  type Random,
  randomOf,
} from '../../../support/runner/random.ts'

const seeds = process.env.PLEDGEVIEW_TEST_SEED ? [process.env.PLEDGEVIEW_TEST_SEED] : ['1', '2']
const steps = 32

const model = useModelTables()

/** Faults of the live fold worker's statements, switched on by the world. */
interface Faults {
  /** The next fold fails at this statement: the process dies, or only the connection. */
  next: { kind: 'killed' | 'unseen'; at: 'fold' | 'record' | 'history'; isAfter: boolean } | undefined
  isDead: boolean
}

function withFaults(tables: Tables, faults: Faults): Tables {
  const fails = (call: Parameters<typeof isCampaignFold>[0], isAfter: boolean) => {
    if (faults.isDead && call.kind !== 'rows') throw new Error('killed')
    const { next } = faults
    if (!next || next.isAfter !== isAfter) return
    const isHit = {
      fold: isCampaignFold(call),
      record: isFoldRecord(call),
      history: /INSERT INTO \w+\.(?:campaign_days|history_\w+)/.test(call.text),
    }[next.at]
    if (!isHit) return
    faults.next = undefined
    if (next.kind === 'unseen') throw lostConnection()
    faults.isDead = true
    throw new Error('killed')
  }
  return obstructed(tables, { before: call => fails(call, false), after: call => fails(call, true) })
}

interface World {
  live: RebuildableModel
  random: Random
  faults: Faults
  clock: StampClock
  versions: Map<string, number>
  deleted: Set<string>
  log: string[]
}

const categories = ['Games', 'Film', 'Music']

function change({ random, clock, versions, deleted }: World): ChangeEvent[] {
  const campaign_id = `c${intBetween(random, 0, 11)}`
  const version = (versions.get(campaign_id) ?? 0) + 1
  versions.set(campaign_id, version)
  const what = pickWeighted(random, [
    ['shown', 6],
    ['hidden', 3],
    ['pledged', 10],
    ['deleted', deleted.size < 3 ? 1 : 0],
  ] as const)
  if (what === 'deleted') {
    deleted.add(campaign_id)
    return [{ type: 'campaign', key: campaign_id, data: null }]
  }
  if (what === 'pledged') {
    return [
      pledgeEvent({
        campaign_id,
        pledge_id: `p${intBetween(random, 0, 4)}`,
        version,
        backer_id: `b${intBetween(random, 0, 5)}`,
        status: pick(random, ['ACTIVE', 'ACTIVE', 'COLLECTED', 'CANCELLED']),
        amount_minor: intBetween(random, 1, 9_999),
        platform_amount_minor: intBetween(random, 1, 9_999),
      }),
    ]
  }
  return [
    campaignEvent({
      campaign_id,
      version,
      status: what === 'hidden' ? 'SUSPENDED' : pick(random, ['LIVE', 'LIVE', 'FUNDED']),
      category: pick(random, categories),
      title: `version ${version}`,
      follower_count: version,
      // No day is derived: derived-days.test.ts does that.
      launch_date: pick(random, [
        null,
        Math.max(clock.now() - intBetween(random, 0, 3 * dayMs), clock.startedAt - dayMs),
      ]),
    }),
  ]
}

async function restart({ live, faults }: World): Promise<void> {
  // A killed projector ends with its error.
  await live.stopProjector().catch((error: Error) => {
    if (error.message !== 'killed') throw error
  })
  faults.isDead = false
  await live.startProjector()
}

/**
 * Days that every world has, however slow the machine is: `moved` opens, as its launch is not known, and moves to another category; `back` is
 * new, hidden, and opens although its launch is of that day; `hidden` departs for good; `again` comes and goes on the first day, and comes back on the
 * next, with a launch of that day; and a day is empty.
 */
async function liveFirstDays({ live, clock }: World): Promise<void> {
  for (const version of [1, 2, 3]) {
    const of = (campaign_id: string, isShown: boolean, launch_date: number | null): ChangeEvent[] => [
      campaignEvent({
        ...{ campaign_id, version: 10 * version, launch_date, title: `version ${version}` },
        ...{ status: isShown ? 'LIVE' : 'SUSPENDED', category: version === 1 ? 'Once' : 'Film' },
      }),
      pledgeEvent({ campaign_id, pledge_id: `of ${version}`, changed_at: clock.now() }),
    ]
    // The day before counts as the day of the launch, too.
    const launch = version === 1 ? clock.now() - dayMs : clock.now()
    await live.append([
      ...of('moved', true, null),
      ...of('back', version !== 2, launch),
      ...of('hidden', version === 1, launch),
      ...of('again', true, clock.now()),
    ])
    await live.settled()
    if (version === 1) {
      await live.append([campaignEvent({ campaign_id: 'again', version: 11, status: 'SUSPENDED' })])
      await live.settled()
    }
    clock.moveForward(version * dayMs)
  }
}

async function step(world: World, isRebuildable: boolean): Promise<void> {
  const { live, random, faults } = world
  const what = pickWeighted(random, [
    ['change', 20],
    ['midnight', 6],
    ['days pass', 2],
    ['restart', 1],
    ['fault', 3],
    ['rebuild', isRebuildable ? 1 : 0],
  ] as const)
  if (what === 'change') {
    const count = intBetween(random, 1, 3)
    for (let n = 0; n < count; n++) await live.append(change(world))
    await delay(intBetween(random, 0, 300))
    if (faults.isDead) await restart(world)
    return
  }
  world.log.push(what)
  // So that midnight comes in the middle of folds, in the last second of the day, and during rebuilds.
  if (what === 'midnight') {
    // Otherwise a fold worker that recovers from a fault folds the changes of many days into one.
    if (!faults.isDead && !faults.next && chance(random, 0.6)) await live.settled()
    world.clock.moveBeforeMidnight(intBetween(random, 0, 500))
    await live.append(change(world))
    return void (await delay(intBetween(random, 0, 1_000)))
  }
  if (what === 'days pass') return world.clock.moveForward(intBetween(random, 0, 3 * dayMs))
  if (what === 'restart') return restart(world)
  if (what === 'rebuild') {
    faults.next = undefined
    if (faults.isDead) await restart(world)
    await live.rebuild()
    if (chance(random, 0.5)) await live.rebuild({ kind: 'rollback' })
    await dropOthers(live)
    return
  }
  const at = pick(random, ['fold', 'record', 'history'] as const)
  faults.next = { at, kind: pick(random, ['killed', 'unseen']), isAfter: chance(random, 0.5) }
}

interface FundingRow extends Record<'new' | 'opening' | 'departed' | 'standing', string> {
  campaigns: number
}

async function readHistory(tables: Tables, { views, base: own }: Databases) {
  const exact = (column: string) => `toString(toInt128(${column} * 10000))`
  const dayNumber = 'toInt32(day)'
  const sums = `${dayNumber} AS day, ${exact('new_pledged_platform_amount')} AS new, new_pledge_count AS pledges,
    ${exact('opening_platform_amount')} AS opening, ${exact('departed_platform_amount')} AS departed,
    ${exact('pledged_platform_amount')} AS standing, campaigns`
  const [end] = await tables.rows<{ today: number; noted: number }>({
    query: `SELECT toInt32(today) AS today, toInt32(noted) AS noted FROM ${own}.history_end`,
  })
  if (!end) throw new Error('no history')
  return {
    ...end,
    days: await tables.rows<{ day: number }>({
      query: `SELECT campaign_id AS id, ${dayNumber} AS day, status, category, ${exact('pledged_amount')} AS pledged,
                ${exact('pledged_platform_amount')} AS platform, backer_count AS backers, pledge_count AS pledges,
                follower_count AS followers, ${exact('new_pledged_platform_amount')} AS new, new_backer_count AS newBackers,
                new_pledge_count AS newPledges, ${exact('opening_platform_amount')} AS opening,
                toInt32(launch_day) AS launch, toInt32(complete_from) AS complete
              FROM ${views}.campaign_days ORDER BY id, day`,
    }),
    notFinal: await tables.rows<{ days: number }>({
      query: `SELECT ${dayNumber} AS days FROM ${views}.campaign_days WHERE is_final != (toInt32(day) < ${end.noted})`,
    }),
    categories: await tables.rows<FundingRow>({
      query: `SELECT category, ${sums} FROM ${views}.category_funding_days ORDER BY category, day`,
    }),
    platform: await tables.rows<FundingRow>({
      query: `SELECT ${sums} FROM ${views}.funding_days ORDER BY day`,
    }),
    now: await tables.rows({
      query: `SELECT ${exact('sum(pledged_platform_amount)')} AS standing, count() AS campaigns FROM ${views}.campaigns`,
    }),
  }
}

/** Compares the history with the notes. Nothing may be folded meanwhile. */
async function compare(world: World, notes: Notes): Promise<number> {
  const { tables, databases } = { tables: model.tables, databases: world.live.databases }
  for (const id of world.deleted) notes.delete(id)
  const history = await readHistory(tables, databases)
  const { today } = history
  expect(history.days).toEqual(expectedDays(notes))
  expect(history.notFinal).toEqual([])
  expect(history.categories).toEqual(expectedFunding(notes, 'category', today))
  expect(history.platform).toEqual(expectedFunding(notes, 'platform', today))
  const { standing, campaigns } = history.platform.at(-1) ?? { standing: '0', campaigns: 0 }
  expect([{ standing, campaigns }]).toEqual(history.now)
  // Otherwise the worlds would prove less than they say.
  const { platform } = history
  const departed = (rows: readonly { departed: string }[]) =>
    rows.reduce((sum, row) => sum + BigInt(row.departed), 0n)
  expect(platform.some(({ opening }) => BigInt(opening) > 0n)).toBe(true)
  expect(platform.some(day => [day.new, day.opening, day.departed].every(sum => sum === '0'))).toBe(true)
  expect(departed(platform)).toBeGreaterThan(0n)
  // A move departs from a category, and not from the platform.
  expect(departed(history.categories)).toBeGreaterThan(departed(platform))
  return new Set(history.days.map(row => row.day)).size
}

test.each(seeds)(
  'the history equals a visitor’s notes, whatever happens (world %s)',
  async seed => {
    const clock = createStampClock()
    const faults: Faults = { next: undefined, isDead: false }
    let databases: Databases = generationOf({ base: '', views: '' }, 1)
    const visited = withVisitor(clock.on(model.tables), () => databases)
    const live = await openRebuildableModel(
      {
        tables: withFaults(visited.tables, faults),
        async freshDatabases() {
          databases = await model.freshDatabases()
          return databases
        },
      },
      { now: clock.now },
    )
    const world: World = {
      live,
      random: randomOf(seed, 'history'),
      faults,
      clock,
      versions: new Map(),
      deleted: new Set(),
      log: [],
    }
    try {
      await liveFirstDays(world)
      for (let n = 0; n < steps; n++) await step(world, n > 10)
      faults.next = undefined
      await live.settled().catch(() => {})
      // A new leader copies what the last one left.
      await restart(world)
      await live.settled()
      await live.stopProjector()
      const days = await compare(world, visited.notes)
      console.log(`world ${seed}: ${days} days; ${world.log.join(', ')}`)
      expect(days).toBeGreaterThan(1)
    } finally {
      await live.close()
    }
  },
  480_000,
)
