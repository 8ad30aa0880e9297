/** The rules of the history, one at a time. history-worlds.test.ts combines those of the days that are kept. */

import { beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { purgeTables } from '../../../../services/erasure/tables.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { isOfLine, lostConnection, obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { campaignEvent, campaignTombstone, pledgeEvent } from '../../../support/events/sample-events.ts'
import {
  createIngest,
  createTestFoldWorker,
  type TestFoldWorker,
} from '../../../support/projector/model-tables.ts'
import { createStampClock, dayMs, type StampClock } from '../../../support/projector/stamp-clock.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'

const model = useModelTables()
let databases: Databases
let clock: StampClock
let worker: TestFoldWorker
let ingest: (events: readonly ChangeEvent[]) => Promise<void>

async function openWorld(): Promise<void> {
  databases = await model.freshDatabases()
  clock = createStampClock()
  // Midday, so that no test crosses a midnight by accident.
  clock.moveBeforeMidnight(0)
  clock.moveForward(dayMs / 2)
  worker = createTestFoldWorker(clock.on(model.tables), databases)
  await worker.foldWorker.acquireLeadership()
  ingest = createIngest(model.tables, databases)
}

beforeEach(async () => {
  await openWorld()
  return () => model.giveBack(databases)
})

async function fold(...events: ChangeEvent[]): Promise<void> {
  await ingest(events)
  await worker.foldWorker.fold()
}

/** As the clock of the fold worker's process sees it, too. */
function nextDay(): void {
  clock.moveForward(dayMs)
  worker.advance(dayMs)
}

const daysAgo = (days: number) => clock.now() - days * dayMs

function pledge(campaign_id: string, pledge_id: string, platform_amount_minor: number, ago = 0): ChangeEvent {
  return pledgeEvent({ campaign_id, pledge_id, platform_amount_minor, changed_at: daysAgo(ago) })
}

const rows = (query: string) => model.tables.rows({ query: query.replaceAll('VIEWS', databases.views) })
const funding = () =>
  rows(`SELECT new_pledged_platform AS new, opening_platform AS opening, departed_platform AS departed,
          pledged_platform AS standing, campaigns FROM VIEWS.funding_days ORDER BY day`)

/** The days of a campaign, by how long ago they were. */
function daysOf(campaign: string) {
  const today = Math.floor(clock.now() / dayMs)
  return rows(`SELECT ${today} - toInt32(day) AS ago, source, status, pledged_platform AS pledged, backer_count AS backers,
                 pledge_count AS pledges, follower_count AS followers, ${today} - toInt32(complete_from) AS complete
               FROM VIEWS.campaign_days WHERE campaign_id = '${campaign}' ORDER BY day`)
}

describe('the history', () => {
  test('counts nothing of a bulk load as the funding of its day, but a campaign that was just launched', async () => {
    await fold(
      campaignEvent({ campaign_id: 'unknown', launch_date: null }),
      pledge('unknown', 'p', 100, 20),
      campaignEvent({ campaign_id: 'new', launch_date: daysAgo(1) }),
      pledge('new', 'p', 300),
    )
    expect(await funding()).toEqual([{ new: 3, opening: 1, departed: 0, standing: 4, campaigns: 2 }])
  })

  test('has the present day, which is final when it is over, and shows the days until today', async () => {
    await fold(campaignEvent({ campaign_id: 'a', launch_date: clock.now() }), pledge('a', 'p', 500))
    expect(await rows('SELECT is_final FROM VIEWS.campaign_days')).toEqual([{ is_final: false }])
    nextDay()
    nextDay()
    await worker.foldWorker.fold()
    expect(await worker.foldWorker.fold()).toBeUndefined()
    expect(await rows('SELECT is_final FROM VIEWS.campaign_days')).toEqual([{ is_final: true }])
    const empty = { new: 0, opening: 0, departed: 0, standing: 5, campaigns: 1 }
    expect(await funding()).toEqual([{ ...empty, new: 5 }, empty, empty])
    expect(await rows('SELECT new_pledged_platform AS new FROM VIEWS.campaign_days')).toEqual([{ new: 5 }])
  })

  test('keeps in the sums what was public, shows nothing of a hidden campaign, and opens it when it is shown again', async () => {
    await fold(campaignEvent({ campaign_id: 'a', launch_date: clock.now() }), pledge('a', 'p', 500))
    nextDay()
    await fold(campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' }))
    expect(await rows('SELECT day FROM VIEWS.campaign_days')).toEqual([])
    const first = { new: 5, opening: 0, departed: 0, standing: 5, campaigns: 1 }
    const second = { new: 0, opening: 0, departed: 5, standing: 0, campaigns: 0 }
    expect(await funding()).toEqual([first, second])
    nextDay()
    // It was known, so it opens although its launch is of today.
    await fold(
      campaignEvent({ campaign_id: 'a', version: 3, launch_date: clock.now() }),
      pledge('a', 'q', 200),
    )
    const third = { new: 0, opening: 7, departed: 0, standing: 7, campaigns: 1 }
    expect(await funding()).toEqual([first, second, third])
    expect(await rows('SELECT pledged_platform AS p FROM VIEWS.campaign_days ORDER BY day')).toEqual([
      { p: 5 },
      { p: 7 },
    ])
  })

  test('has nothing of a deleted campaign, from the tombstone on, and a purge removes it from disk', async () => {
    await fold(
      campaignEvent({ campaign_id: 'a', launch_date: daysAgo(9) }),
      pledge('a', 'p', 500, 4),
      campaignEvent({ campaign_id: 'b', launch_date: clock.now() }),
      pledge('b', 'p', 100),
    )
    nextDay()
    await worker.foldWorker.fold()
    // Not folded yet.
    await ingest([campaignTombstone('a')])
    expect(await funding()).toMatchObject([{ standing: 1, campaigns: 1 }, { standing: 1 }])
    await worker.foldWorker.fold()
    const purge = {
      isDry: false,
      removesRejects: false,
      msMax: 60_000,
      now: Date.now,
      monotonicMs: () => performance.now(),
      sleep,
    }
    const kept = () => rows(`SELECT DISTINCT campaign_id AS id FROM ${databases.base}.campaign_days`)
    expect(await purgeTables({ tables: model.tables, databases }, purge)).toContainEqual(
      expect.objectContaining({
        copy: 'table campaign_days',
        done: 'removed the rows of 1 deleted campaign',
      }),
    )
    expect(await kept()).toEqual([{ id: 'b' }])
    nextDay()
    await worker.foldWorker.fold()
    expect(await kept()).toEqual([{ id: 'b' }])
  })

  test('knows each day of a campaign that was launched on the day before it was first seen', async () => {
    await fold(campaignEvent({ campaign_id: 'a', launch_date: daysAgo(1) }), pledge('a', 'p', 500))
    nextDay()
    await fold(pledge('a', 'q', 200))
    expect(await daysOf('a')).toMatchObject([
      { ago: 1, complete: 2 },
      { ago: 0, complete: 2 },
    ])
  })

  test('shows the launch as it is known now on every day of a campaign', async () => {
    const launch = daysAgo(1)
    await fold(campaignEvent({ campaign_id: 'a', launch_date: launch }))
    nextDay()
    await fold(campaignEvent({ campaign_id: 'a', version: 2, launch_date: launch + dayMs }))
    expect(
      await rows(
        `SELECT day - launch_day AS days FROM VIEWS.campaign_days WHERE campaign_id = 'a' ORDER BY day`,
      ),
    ).toEqual([{ days: 0 }, { days: 1 }])
  })

  test('opens a category that a campaign moves to, and departs from the other; the platform sees no move', async () => {
    await fold(
      campaignEvent({ campaign_id: 'a', category: 'Games', launch_date: clock.now() }),
      pledge('a', 'p', 500),
    )
    nextDay()
    await fold(campaignEvent({ campaign_id: 'a', version: 2, category: 'Film' }), pledge('a', 'q', 200))
    expect(
      await rows(`SELECT category, new_pledged_platform AS new, opening_platform AS opening, departed_platform AS departed,
                    pledged_platform AS standing FROM VIEWS.category_funding_days ORDER BY category, day`),
    ).toEqual([
      { category: 'Film', new: 2, opening: 5, departed: 0, standing: 7 },
      { category: 'Games', new: 5, opening: 0, departed: 0, standing: 5 },
      { category: 'Games', new: 0, opening: 0, departed: 5, standing: 0 },
    ])
    expect(await funding()).toMatchObject([{ new: 5 }, { new: 2, opening: 0, departed: 0, standing: 7 }])
  })
})

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
    campaignEvent({ campaign_id: 'new', launch_date: clock.now() }),
  ]
}

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

  test('follow what still arrives on the first day, and stand from the next one on', async () => {
    await fold(...backfill())
    worker.advance(20_000)
    // One that is gone leaves no day with its amount.
    await fold(
      pledgeEvent({
        campaign_id: 'live',
        pledge_id: 'q',
        version: 2,
        status: 'REFUNDED',
        changed_at: clock.now(),
      }),
      pledge('live', 'late', 1_600, 7),
    )
    const amounts = async () => (await daysOf('live')).map(row => Object(row).pledged)
    expect(await amounts()).toEqual([1, 17, 19, 19, 27])
    nextDay()
    await fold(pledge('live', 'later', 3_200, 8))
    expect(await amounts()).toEqual([1, 17, 19, 19, 27, 59])
    expect((await funding()).at(-1)).toMatchObject({ new: 32 })
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
  })

  test('follow a campaign that is hidden, shown again or moved on the first day, and are gone if it ends hidden', async () => {
    await fold(...backfill())
    const [ofLive, ofEnded] = [
      { campaign_id: 'live', launch_date: daysAgo(9), end_date: daysAgo(-9) },
      { campaign_id: 'ended', launch_date: daysAgo(30), end_date: daysAgo(20) },
    ]
    const change = (version: number, status: 'LIVE' | 'SUSPENDED', category: string, afterMs = 20_000) => {
      worker.advance(afterMs)
      const next = { version, status, category }
      return fold(campaignEvent({ ...ofLive, ...next }), campaignEvent({ ...ofEnded, ...next }))
    }
    const texts = () =>
      rows(`SELECT DISTINCT category FROM ${databases.base}.campaign_days FINAL WHERE source = 'derived'`)
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
                  WHERE toInt32(day) < ${Math.floor(clock.now() / dayMs)}`),
    ).toEqual([{ category: 'Film' }])
    expect((await funding()).at(-1)).toMatchObject({ new: 8, opening: 0, departed: 0, standing: 45 })

    await change(5, 'SUSPENDED', 'Film')
    nextDay()
    await change(6, 'LIVE', 'Music')
    expect(await texts()).toEqual([{ category: '' }])
    expect(await daysOf('live')).toMatchObject([{ source: 'kept', ago: 0, pledged: 15, complete: 1 }])
    expect((await funding()).at(-1)).toMatchObject({ new: 0, opening: 45, departed: 0, standing: 45 })
    const [sums] = await rows(`SELECT sum(pledged_platform) AS standing, sum(campaigns) AS campaigns
                               FROM VIEWS.category_funding_days WHERE day = toDate(${Math.floor(clock.now() / dayMs)})`)
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
      await model.giveBack(databases)
      await openWorld()
      await ingest(backfill())
      let left = last
      const tables = obstructed(clock.on(model.tables), {
        after(call) {
          if (!isOfLine(call) || left-- > 0) return
          left = Number.POSITIVE_INFINITY
          failures++
          throw lostConnection()
        },
      })
      const killed = createTestFoldWorker(tables, databases).foldWorker
      await killed
        .acquireLeadership()
        .then(() => killed.fold())
        .catch(() => undefined)
      await worker.foldWorker.acquireLeadership()
      await worker.foldWorker.fold()
      await worker.foldWorker.fold()
      expect(await history(), `after statement ${last}`).toEqual(expected)
    }
    expect(failures).toBeGreaterThan(7)
  }, 120_000)
})
