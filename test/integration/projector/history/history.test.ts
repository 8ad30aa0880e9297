/** Rules of the history, one at a time, that history-worlds.test.ts does not show. */

import { describe, expect, test } from 'vitest'
import { purgeTables } from '../../../../services/erasure/tables.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { campaignEvent, campaignTombstone } from '../../../support/events/sample-events.ts'
import { createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { dayMs } from '../../../support/projector/stamp-clock.ts'
import { useHistory } from '../../../support/projector/use-history.ts'

const world = useHistory()
const { fold, nextDay, daysAgo, pledge, rows, funding, daysOf } = world

describe('the history', () => {
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

  test('does not know when a campaign was pledged to while it was hidden, unless it was launched again', async () => {
    const again = (version: number, launch_date: number) =>
      campaignEvent({ campaign_id: 'b', version, launch_date })
    const hidden = (campaign_id: string) => campaignEvent({ campaign_id, version: 2, status: 'SUSPENDED' })
    const launch_date = daysAgo(0)
    await fold(campaignEvent({ campaign_id: 'a', launch_date }), again(1, launch_date))
    nextDay()
    await fold(hidden('a'), hidden('b'))
    nextDay()
    nextDay()
    await fold(
      campaignEvent({ campaign_id: 'a', version: 3, launch_date }),
      pledge('a', 'p', 500, 1),
      again(3, daysAgo(0)),
    )
    nextDay()
    await fold(pledge('a', 'q', 200), pledge('b', 'q', 200))
    expect(await daysOf('a')).toMatchObject([
      { ago: 4, complete: 4 },
      { ago: 1, complete: 1 },
      { ago: 0, complete: 1 },
    ])
    expect((await daysOf('b')).slice(1)).toMatchObject([
      { ago: 1, complete: 1 },
      { ago: 0, complete: 1 },
    ])
  })

  describe.each([
    { midnight: 'the leader has seen', seenMs: 1_000, refusal: undefined },
    { midnight: 'the leader has not seen', seenMs: 0, refusal: 'a day has ended' },
  ])('after a midnight that $midnight', ({ seenMs, refusal }) => {
    test('has the last state of the day before, although folds go on and the copy waited for its turn', async () => {
      const { clock, model, databases } = world
      const isCopy = (text: string) => text.includes(`INSERT INTO ${databases.base}.campaign_days`)
      const { foldWorker, advance } = createTestFoldWorker(
        // A copy takes a second. So the next one may begin nine seconds later.
        obstructed(clock.on(model.tables), { after: ({ text }) => void (isCopy(text) && advance(1_000)) }),
        databases,
      )
      const pledged = async (platform_amount_minor: number) => {
        await world.ingest([pledge('a', `p${platform_amount_minor}`, platform_amount_minor)])
        await foldWorker.fold()
      }
      const shown = () =>
        rows('SELECT toDate(day) AS day, pledged_platform AS pledged FROM VIEWS.campaign_days ORDER BY day')
      await foldWorker.acquireLeadership()
      await world.ingest([campaignEvent({ campaign_id: 'a', launch_date: clock.now() })])
      await pledged(100)
      await pledged(200)
      expect(await shown()).toMatchObject([{ pledged: 1 }])
      clock.moveForward(dayMs)
      advance(seenMs)
      const next = pledged(400)
      if (refusal !== undefined) {
        await expect(next).rejects.toThrow(refusal)
        await foldWorker.acquireLeadership()
        await foldWorker.fold()
      }
      await next.catch(() => {})
      await foldWorker.fold()
      expect(await shown()).toMatchObject([{ pledged: 3 }, { pledged: 7 }])
    })
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
})
