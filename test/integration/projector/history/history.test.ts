/** The rules of the history, one at a time. history-worlds.test.ts combines them. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { purgeTables } from '../../../../services/erasure/tables.ts'
import { sleep } from '../../../../services/runtime/sleep.ts'
import { qualified } from '../../../../services/tables/generations.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { campaignEvent, campaignTombstone, pledgeEvent } from '../../../support/events/sample-events.ts'
import {
  createIngest,
  createTestFoldWorker,
  type ModelTables,
  openModelTables,
  type TestFoldWorker,
} from '../../../support/projector/model-tables.ts'
import { createStampClock, dayMs, type StampClock } from '../../../support/projector/stamp-clock.ts'

let model: ModelTables
let databases: Databases
let clock: StampClock
let worker: TestFoldWorker
let ingest: (events: readonly ChangeEvent[]) => Promise<void>

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

beforeEach(async () => {
  databases = await model.freshDatabases()
  clock = createStampClock()
  // Midday, so that no test crosses a midnight by accident.
  clock.moveBeforeMidnight(0)
  clock.moveForward(dayMs / 2)
  worker = createTestFoldWorker(clock.on(model.tables), databases)
  await worker.foldWorker.acquireLeadership()
  ingest = createIngest(model.tables, databases)
  return () => model.drop(databases)
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

function pledge(campaign_id: string, pledge_id: string, platform_amount_minor: number): ChangeEvent {
  return pledgeEvent({ campaign_id, pledge_id, platform_amount_minor })
}

const rows = (query: string) => model.tables.rows({ query: query.replaceAll('VIEWS', databases.views) })
const funding = () =>
  rows(`SELECT new_pledged_platform AS new, opening_platform AS opening, departed_platform AS departed,
          pledged_platform AS standing, campaigns FROM VIEWS.funding_days ORDER BY day`)

describe('the history', () => {
  test('counts nothing of a bulk load as the funding of its day, but a campaign that was just launched', async () => {
    await fold(
      campaignEvent({ campaign_id: 'old', launch_date: clock.now() - 30 * dayMs }),
      pledge('old', 'p', 500),
      campaignEvent({ campaign_id: 'unknown', launch_date: null }),
      pledge('unknown', 'p', 100),
      campaignEvent({ campaign_id: 'new', launch_date: clock.now() - dayMs }),
      pledge('new', 'p', 300),
    )
    expect(await funding()).toEqual([{ new: 3, opening: 6, departed: 0, standing: 9, campaigns: 3 }])
  })

  test('closes a day also while nothing is folded, and shows the days until today', async () => {
    await fold(campaignEvent({ campaign_id: 'a', launch_date: clock.now() }), pledge('a', 'p', 500))
    expect(await rows('SELECT is_final FROM VIEWS.campaign_days')).toEqual([{ is_final: false }])
    nextDay()
    nextDay()
    expect(await worker.foldWorker.fold()).toBeUndefined()
    expect(await rows('SELECT is_final FROM VIEWS.campaign_days')).toEqual([{ is_final: true }])
    const empty = { new: 0, opening: 0, departed: 0, standing: 5, campaigns: 1 }
    expect(await funding()).toEqual([{ ...empty, new: 5 }, empty, empty])
    expect(
      await rows('SELECT new_pledged_platform AS new FROM VIEWS.campaign_funding_days ORDER BY day'),
    ).toEqual([{ new: 5 }, { new: 0 }, { new: 0 }])
  })

  test('keeps in the sums what was public, shows nothing of a hidden campaign, and opens it when it is shown again', async () => {
    await fold(campaignEvent({ campaign_id: 'a', launch_date: clock.now() }), pledge('a', 'p', 500))
    nextDay()
    await fold(campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' }))
    expect(await rows('SELECT day FROM VIEWS.campaign_days')).toEqual([])
    expect(await rows('SELECT day FROM VIEWS.campaign_funding_days')).toEqual([])
    const first = { new: 5, opening: 0, departed: 0, standing: 5, campaigns: 1 }
    const second = { new: 0, opening: 0, departed: 5, standing: 0, campaigns: 0 }
    expect(await funding()).toEqual([first, second])
    nextDay()
    await fold(campaignEvent({ campaign_id: 'a', version: 3 }), pledge('a', 'q', 200))
    const third = { new: 0, opening: 7, departed: 0, standing: 7, campaigns: 1 }
    expect(await funding()).toEqual([first, second, third])
    expect(await rows('SELECT pledged_platform AS p FROM VIEWS.campaign_days ORDER BY day')).toEqual([
      { p: 5 },
      { p: 7 },
    ])
  })

  test('has nothing of a deleted campaign, from the tombstone on, and a purge removes it from disk', async () => {
    await fold(
      campaignEvent({ campaign_id: 'a', launch_date: clock.now() }),
      pledge('a', 'p', 500),
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
    const copies = await purgeTables({ tables: model.tables, databases }, purge)
    for (const table of ['campaign_days', 'history_latest']) {
      expect(copies).toContainEqual(
        expect.objectContaining({ copy: `table ${table}`, done: 'removed the rows of 1 deleted campaign' }),
      )
      expect(await rows(`SELECT DISTINCT campaign_id AS id FROM ${qualified(table, databases)}`)).toEqual([
        { id: 'b' },
      ])
    }
    nextDay()
    await worker.foldWorker.fold()
    expect(await rows(`SELECT DISTINCT campaign_id AS id FROM ${databases.base}.campaign_days`)).toEqual([
      { id: 'b' },
    ])
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
