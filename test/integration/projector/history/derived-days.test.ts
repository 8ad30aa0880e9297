/** The days before the first one that was kept: they are derived from the pledges. And what is deleted has no days. */

import { describe, expect, test } from 'vitest'
import type { CampaignState, ChangeEvent } from '../../../../contracts/events/event.ts'
import { purgeTables } from '../../../../services/erasure/tables.ts'
import { readExamples } from '../../../../services/portal/guide/data-examples.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { isOfLine, lostConnection, obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { campaignEvent, campaignTombstone, pledgeEvent } from '../../../support/events/sample-events.ts'
import { createTestFoldWorker, expectedReading, readViews } from '../../../support/projector/model-tables.ts'
import { dayMs } from '../../../support/projector/stamp-clock.ts'
import { useHistory } from '../../../support/projector/use-history.ts'
import { chance, intBetween, pick, pickWeighted, randomOf } from '../../../support/runner/random.ts'

const world = useHistory()
const { fold, nextDay, daysAgo, pledge, rows, funding, daysOf } = world

/** A campaign that runs, one that has ended, one that is hidden, and one that is new. */
function backfill(): ChangeEvent[] {
  return [
    campaignEvent({ campaign_id: 'live', launch_date: daysAgo(9), end_date: daysAgo(-9), follower_count: 7 }),
    pledge('live', 'early', 100, 9),
    pledge('live', 'p', 200, 5),
    // One backer pledged twice.
    pledgeEvent({
      campaign_id: 'live',
      pledge_id: 'q',
      backer_id: 'backer of p',
      platform_amount_minor: 400,
      changed_at: daysAgo(3),
    }),
    pledge('live', 'today', 800, 0),
    pledgeEvent({ campaign_id: 'live', pledge_id: 'off', status: 'CANCELLED', changed_at: daysAgo(4) }),
    campaignEvent({
      campaign_id: 'ended',
      status: 'FUNDED',
      launch_date: daysAgo(30),
      end_date: daysAgo(20),
    }),
    pledge('ended', 'p', 1_000, 25),
    // As it is after the collection.
    pledge('ended', 'q', 2_000, 2),
    campaignEvent({ campaign_id: 'hidden', status: 'SUSPENDED', launch_date: daysAgo(9) }),
    pledge('hidden', 'p', 100, 4),
    campaignEvent({ campaign_id: 'new', launch_date: world.clock.now() }),
  ]
}

const seeds = process.env.PLEDGEVIEW_TEST_SEED ? [process.env.PLEDGEVIEW_TEST_SEED] : ['1', '2']
const steps = 24

const derived = { source: 'derived', status: 'LIVE', followers: null }

describe('the days before the history', () => {
  test('are derived from the days of the pledges that count, for campaigns that are public, and say so', async () => {
    await fold(...backfill())
    const live = { ...derived, complete: 9 }
    const ended = { ...derived, complete: 0 }
    expect(await daysOf('live')).toEqual([
      { ...live, ago: 9, pledged: 1, backers: 1, pledges: 1 },
      { ...live, ago: 5, pledged: 3, backers: 2, pledges: 2 },
      { ...live, ago: 3, pledged: 7, backers: 2, pledges: 3 },
      { ...live, ago: 0, source: 'kept', followers: 7, pledged: 15, backers: 3, pledges: 4 },
    ])
    expect(await daysOf('ended')).toMatchObject([
      { ...ended, ago: 30, pledged: 0, backers: 0, pledges: 0 },
      { ...ended, ago: 25, pledged: 10, backers: 1, pledges: 1 },
      { ...ended, ago: 20, status: 'FUNDED', pledged: 30, backers: 2, pledges: 2 },
      { ago: 0, source: 'kept', pledged: 30, complete: 0 },
    ])
    expect(await daysOf('hidden')).toEqual([])
    expect(await daysOf('new')).toMatchObject([{ source: 'kept', ago: 0, complete: 0 }])
    expect(
      await rows(`SELECT sum(new_pledged_platform) AS new, sum(opening_platform) AS opening, count() AS days,
                    argMax(pledged_platform, day) AS standing FROM VIEWS.funding_days`),
    ).toEqual([{ new: 45, opening: 0, days: 31, standing: 45 }])
    expect(await rows('SELECT history_kept_from - history_from AS days FROM VIEWS.about')).toEqual([
      { days: 30 },
    ])
  })

  test('are not derived from a launch that no Date has: what it has is an opening; and an end may be as late', async () => {
    const far = Date.UTC(2199, 11, 31)
    await fold(
      campaignEvent({ campaign_id: 'undated', launch_date: Date.UTC(1900, 0, 1) }),
      pledge('undated', 'p', 100, 5),
      campaignEvent({ campaign_id: 'endless', launch_date: daysAgo(9), end_date: far }),
      pledge('endless', 'p', 200, 5),
    )
    expect(await daysOf('undated')).toMatchObject([{ source: 'kept', ago: 0, pledged: 1 }])
    const shown = `SELECT sum(opening_platform) AS opening, sum(new_pledged_platform) AS new, any(launch_day) AS launched
                   FROM VIEWS.campaign_days WHERE campaign_id = 'undated'`
    expect(await rows(shown)).toEqual([{ opening: 1, new: 0, launched: null }])
    const [byMonth] = readExamples(world.databases.views)
    expect(await rows(byMonth?.sql ?? '')).toMatchObject([{ month: '1900-01-01', raised: 1 }, {}])
    expect(await daysOf('endless')).toMatchObject([
      { ago: 9, pledged: 0 },
      { ago: 5, pledged: 2 },
      { source: 'kept', ago: 0, pledged: 2 },
    ])
  })

  test('follow what still arrives on the first day, and stand from the next one on', async () => {
    await fold(...backfill())
    world.worker.advance(20_000)
    // One that is gone leaves no day with its amount.
    await fold(
      pledgeEvent({
        campaign_id: 'live',
        pledge_id: 'q',
        version: 2,
        status: 'REFUNDED',
        changed_at: world.clock.now(),
      }),
      pledge('live', 'late', 1_600, 7),
    )
    const amounts = async () => (await daysOf('live')).map(row => Object(row).pledged)
    expect(await amounts()).toEqual([1, 17, 19, 19, 27])
    const finals = async () =>
      (await rows(`SELECT is_final FROM VIEWS.campaign_days WHERE campaign_id = 'live' ORDER BY day`)).map(
        row => Object(row).is_final,
      )
    expect(await finals()).toEqual([false, false, false, false, false])
    nextDay()
    await fold(pledge('live', 'later', 3_200, 8))
    expect(await amounts()).toEqual([1, 17, 19, 19, 27, 59])
    expect(await finals()).toEqual([true, true, true, true, true, false])
    expect((await funding()).at(-1)).toMatchObject({ new: 32 })
  })

  test('never have a pledge that the first day does not show yet', async () => {
    let arrived: ChangeEvent[] = [pledge('live', 'ahead', 1_600, 4), pledge('ended', 'ahead', 1_600, 22)]
    const tables = obstructed(world.clock.on(world.model.tables), {
      async before(call) {
        if (call.text.includes('AS of_pledges')) await world.ingest(arrived.splice(0))
      },
    })
    const { foldWorker, advance } = createTestFoldWorker(tables, world.databases)
    await foldWorker.acquireLeadership()
    await world.ingest(backfill())
    const amounts = async () =>
      [await daysOf('live'), await daysOf('ended')].map(days => days.map(row => Object(row).pledged))
    await foldWorker.fold()
    expect(arrived).toEqual([])
    expect(await amounts()).toEqual([[15], [30]])
    // It shows it, and again one arrives meanwhile, of today.
    advance(20_000)
    arrived = [pledge('live', 'of today', 3_200, 0)]
    await foldWorker.fold()
    expect(await amounts()).toEqual([
      [1, 3, 19, 23, 31],
      [0, 10, 26, 46, 46],
    ])
  })

  test('are derived again after a pause of two hundred times as long as that took, because the fold waits for it', async () => {
    let tookMs = 500
    let derivations = 0
    const tables = obstructed(world.clock.on(world.model.tables), {
      after(call) {
        if (!call.text.includes('AS of_pledges')) return
        derivations++
        worker.advance(tookMs)
      },
    })
    const worker = createTestFoldWorker(tables, world.databases)
    await worker.foldWorker.acquireLeadership()
    const derivationsAfter = async (ms: number) => {
      worker.advance(ms)
      await world.ingest([pledge('live', `after ${derivations} and ${ms}`, 100, 3)])
      await worker.foldWorker.fold()
      return derivations
    }
    await world.ingest(backfill())
    expect(await derivationsAfter(0)).toBe(1)
    expect(await derivationsAfter(99_000)).toBe(1)
    tookMs = 10
    expect(await derivationsAfter(1_000)).toBe(2)
    expect(await derivationsAfter(9_000)).toBe(2)
    tookMs = 60_000
    expect(await derivationsAfter(1_000)).toBe(3)
    expect(await derivationsAfter(1_799_000)).toBe(3)
    expect(await derivationsAfter(1_000)).toBe(4)
  })

  test('are in the category of the first day that was kept, and leave every sum with a campaign that is hidden', async () => {
    await fold(...backfill())
    nextDay()
    await fold(
      campaignEvent({ campaign_id: 'live', version: 2, category: 'Other', launch_date: daysAgo(10) }),
      campaignEvent({ campaign_id: 'ended', version: 2, status: 'SUSPENDED' }),
    )
    const categories = (source: string) =>
      rows(`SELECT DISTINCT category FROM VIEWS.campaign_days WHERE campaign_id = 'live' AND source = '${source}'
            ORDER BY category`)
    const [first] = await categories('derived')
    expect(await categories('kept')).toEqual([first, { category: 'Other' }])
    const sums = await funding()
    expect(sums).toHaveLength(11)
    expect(sums.slice(-2)).toMatchObject([
      // The kept days of the hidden campaign still count. Its derived days do not.
      { new: 8, opening: 30, standing: 45, campaigns: 3 },
      { departed: 30, standing: 15, campaigns: 2 },
    ])
    // What was pledged on the first day stays its funding.
    nextDay()
    await fold(campaignEvent({ campaign_id: 'live', version: 3, status: 'SUSPENDED', category: 'Other' }))
    expect((await funding()).slice(-3)).toMatchObject([
      { new: 8, opening: 37, standing: 45, campaigns: 3 },
      { departed: 30, standing: 15, campaigns: 2 },
      { departed: 15, standing: 0, campaigns: 1 },
    ])
    expect(
      await rows(`SELECT sum(new_pledged_platform) AS new, sum(new_pledge_count) AS pledges, sum(opening_platform) AS opening
                  FROM VIEWS.category_funding_days WHERE day < toDate(${Math.floor(world.clock.now() / dayMs) - 1})`),
    ).toEqual([{ new: 8, pledges: 1, opening: 37 }])
    nextDay()
    await fold(
      campaignEvent({ campaign_id: 'live', version: 4, category: 'Other', launch_date: daysAgo(11) }),
    )
    expect((await funding()).slice(-4)).toMatchObject([
      { new: 8 },
      { new: 0 },
      { new: 0 },
      { new: 0, opening: 15 },
    ])
  })

  test('follow a campaign that is hidden, shown again or moved on the first day, and are gone if it ends hidden', async () => {
    await fold(...backfill())
    const [ofLive, ofEnded] = [
      { campaign_id: 'live', launch_date: daysAgo(9), end_date: daysAgo(-9) },
      { campaign_id: 'ended', launch_date: daysAgo(30), end_date: daysAgo(20) },
    ]
    const change = (version: number, status: 'LIVE' | 'SUSPENDED', category: string, afterMs = 20_000) => {
      world.worker.advance(afterMs)
      const next = { version, status, category }
      return fold(campaignEvent({ ...ofLive, ...next }), campaignEvent({ ...ofEnded, ...next }))
    }
    const texts = () =>
      rows(
        `SELECT DISTINCT category FROM ${world.databases.base}.campaign_days FINAL WHERE source = 'derived'`,
      )
    await change(2, 'SUSPENDED', 'Other')
    expect(await texts()).toEqual([{ category: '' }])
    expect((await funding()).at(-1)).toMatchObject({ standing: 0, campaigns: 1 })
    await change(3, 'LIVE', 'Other')
    expect(await texts()).toEqual([{ category: 'Other' }])
    expect((await daysOf('live')).map(row => Object(row).pledged)).toEqual([1, 3, 7, 15])
    expect((await funding()).at(-1)).toMatchObject({ new: 8, opening: 0, departed: 0, standing: 45 })

    // Too early to derive again.
    await change(4, 'LIVE', 'Film', 0)
    expect(
      await rows(`SELECT DISTINCT category FROM VIEWS.category_funding_days
                  WHERE toInt32(day) < ${Math.floor(world.clock.now() / dayMs)}`),
    ).toEqual([{ category: 'Film' }])
    expect((await funding()).at(-1)).toMatchObject({ new: 8, opening: 0, departed: 0, standing: 45 })

    await change(5, 'SUSPENDED', 'Film')
    nextDay()
    await change(6, 'LIVE', 'Music')
    expect(await texts()).toEqual([{ category: '' }])
    expect(await daysOf('live')).toMatchObject([{ source: 'kept', ago: 0, pledged: 15, complete: 0 }])
    expect((await funding()).at(-1)).toMatchObject({ new: 0, opening: 45, departed: 0, standing: 45 })
    const [sums] = await rows(`SELECT sum(pledged_platform) AS standing, sum(campaigns) AS campaigns
                               FROM VIEWS.category_funding_days WHERE day = toDate(${Math.floor(world.clock.now() / dayMs)})`)
    expect(sums).toEqual({ standing: 45, campaigns: 3 })
  })

  test('come out the same whichever statement of the line is the last one before a kill, or loses its answer', async () => {
    await fold(...backfill())
    const history = () =>
      rows('SELECT * EXCEPT updated_at FROM VIEWS.campaign_days ORDER BY campaign_id, day')
    const expected = await history()
    expect(expected.length).toBeGreaterThan(8)
    let failures = 0
    for (let last = 0; failures === last; last++) {
      await world.model.giveBack(world.databases)
      await world.open()
      const events = backfill()
      await world.ingest(events)
      let left = last
      const tables = obstructed(world.clock.on(world.model.tables), {
        after(call) {
          if (!isOfLine(call) || left-- > 0) return
          left = Number.POSITIVE_INFINITY
          failures++
          throw lostConnection()
        },
      })
      const killed = createTestFoldWorker(tables, world.databases).foldWorker
      await killed
        .acquireLeadership()
        .then(() => killed.fold())
        .catch(() => undefined)
      await world.worker.foldWorker.acquireLeadership()
      await world.worker.foldWorker.fold()
      await world.worker.foldWorker.fold()
      expect(await history(), `after statement ${last}`).toEqual(expected)
      const shown = expectedReading(readModelOf(events))
      expect(await readViews(world.model.tables, world.databases), `after statement ${last}`).toEqual(shown)
    }
    expect(failures).toBeGreaterThan(6)
  }, 480_000)

  test.each(seeds)(
    'add up with those that are kept, whatever happens on the first day (world %s)',
    async seed => {
      const random = randomOf(seed)
      const facts = new Map<string, Partial<CampaignState> & { campaign_id: string; version: number }>()
      for (const campaign_id of ['a', 'b', 'c', 'd']) {
        const launch_date = daysAgo(intBetween(random, 0, 12))
        facts.set(campaign_id, { campaign_id, version: 0, launch_date, end_date: launch_date + 30 * dayMs })
      }
      const change = (id: string, next: Partial<CampaignState>) => {
        const own = facts.get(id) ?? { campaign_id: id, version: 0 }
        return campaignEvent(Object.assign(own, next, { version: own.version + 1 }))
      }
      await fold(...[...facts.keys()].map(id => change(id, {})))
      for (let step = 0; step < steps; step++) {
        const id = pick(random, [...facts.keys()])
        const what = pickWeighted(random, [
          ['pledge', 6],
          ['status', 4],
          ['category', 3],
          ['day', step > steps / 2 ? 2 : 0],
        ] as const)
        if (what === 'day') nextDay()
        // Sometimes too early to derive again.
        if (chance(random, 0.5)) world.worker.advance(20_000)
        if (what === 'pledge')
          await fold(pledge(id, `p${step}`, intBetween(random, 1, 999), intBetween(random, 0, 12)))
        if (what === 'status') await fold(change(id, { status: pick(random, ['LIVE', 'SUSPENDED']) }))
        if (what === 'category') await fold(change(id, { category: pick(random, ['Games', 'Film']) }))
        expect(await wrongSums(), `step ${step}: ${what} ${id}`).toEqual([])
      }
    },
    120_000,
  )
})

test('the history has nothing of a deleted campaign, from the tombstone on, and a purge removes it from disk', async () => {
  await fold(
    campaignEvent({ campaign_id: 'a', launch_date: daysAgo(9) }),
    pledge('a', 'p', 500, 4),
    campaignEvent({ campaign_id: 'b', launch_date: world.clock.now() }),
    pledge('b', 'p', 100),
  )
  nextDay()
  await world.worker.foldWorker.fold()
  // Not folded yet.
  await world.ingest([campaignTombstone('a')])
  expect(await funding()).toMatchObject([{ standing: 1, campaigns: 1 }, { standing: 1 }])
  await world.worker.foldWorker.fold()
  const purge = {
    isDry: false,
    removesRejects: false,
    msMax: 60_000,
    now: Date.now,
    monotonicMs: () => performance.now(),
    sleep,
  }
  const kept = () => rows(`SELECT DISTINCT campaign_id AS id FROM ${world.databases.base}.campaign_days`)
  expect(await purgeTables({ tables: world.model.tables, databases: world.databases }, purge)).toContainEqual(
    expect.objectContaining({
      copy: 'table campaign_days',
      done: 'removed the rows of 1 deleted campaign',
    }),
  )
  expect(await kept()).toEqual([{ id: 'b' }])
  nextDay()
  await world.worker.foldWorker.fold()
  expect(await kept()).toEqual([{ id: 'b' }])
})

/** The places where the views of the history contradict each other, or the campaigns as they are now. */
function wrongSums(): Promise<unknown[]> {
  return rows(`
    SELECT 'a campaign' AS place, concat(campaign_id, ' ', toString(day)) AS id FROM
    (
      SELECT *, lagInFrame(pledged_platform_amount) OVER (PARTITION BY campaign_id ORDER BY day) AS before FROM VIEWS.campaign_days
    )
    WHERE if(opening_platform_amount = 0, pledged_platform_amount - before, 0) != new_pledged_platform_amount
    UNION ALL
    SELECT 'a day', toString(day) FROM VIEWS.funding_days AS whole
    FULL JOIN
    (
      SELECT day, sum(pledged_platform_amount) AS standing, sum(campaigns) AS count FROM VIEWS.category_funding_days GROUP BY day
    ) AS sums ON sums.day = whole.day
    WHERE (sums.standing, sums.count) != (whole.pledged_platform_amount, whole.campaigns)
    UNION ALL
    SELECT 'now', '' WHERE (SELECT (argMax(pledged_platform_amount, day), argMax(campaigns, day)) FROM VIEWS.funding_days)
      != (SELECT (sum(pledged_platform_amount), count()) FROM VIEWS.campaigns)`)
}
