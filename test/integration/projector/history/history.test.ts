/** The rules of the history, one at a time. history-worlds.test.ts combines those of the days that are kept. */

import { describe, expect, test } from 'vitest'
import { purgeTables } from '../../../../services/erasure/tables.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { campaignEvent, campaignTombstone } from '../../../support/events/sample-events.ts'
import { dayMs } from '../../../support/projector/stamp-clock.ts'
import { useHistory } from '../../../support/projector/use-history.ts'

const world = useHistory()
const { fold, nextDay, daysAgo, pledge, rows, funding, daysOf } = world

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
    await fold(campaignEvent({ campaign_id: 'a', launch_date: world.clock.now() }), pledge('a', 'p', 500))
    expect(await rows('SELECT is_final FROM VIEWS.campaign_days')).toEqual([{ is_final: false }])
    nextDay()
    nextDay()
    await world.worker.foldWorker.fold()
    expect(await world.worker.foldWorker.fold()).toBeUndefined()
    expect(await rows('SELECT is_final FROM VIEWS.campaign_days')).toEqual([{ is_final: true }])
    const empty = { new: 0, opening: 0, departed: 0, standing: 5, campaigns: 1 }
    expect(await funding()).toEqual([{ ...empty, new: 5 }, empty, empty])
    expect(await rows('SELECT new_pledged_platform AS new FROM VIEWS.campaign_days')).toEqual([{ new: 5 }])
  })

  test('keeps in the sums what was public, shows nothing of a hidden campaign, and opens it when it is shown again', async () => {
    await fold(campaignEvent({ campaign_id: 'a', launch_date: world.clock.now() }), pledge('a', 'p', 500))
    nextDay()
    await fold(campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' }))
    expect(await rows('SELECT day FROM VIEWS.campaign_days')).toEqual([])
    const first = { new: 5, opening: 0, departed: 0, standing: 5, campaigns: 1 }
    const second = { new: 0, opening: 0, departed: 5, standing: 0, campaigns: 0 }
    expect(await funding()).toEqual([first, second])
    nextDay()
    // It was known, so it opens although its launch is of today.
    await fold(
      campaignEvent({ campaign_id: 'a', version: 3, launch_date: world.clock.now() }),
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
    expect(
      await purgeTables({ tables: world.model.tables, databases: world.databases }, purge),
    ).toContainEqual(
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
      campaignEvent({ campaign_id: 'a', category: 'Games', launch_date: world.clock.now() }),
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
