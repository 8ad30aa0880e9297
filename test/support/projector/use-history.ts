/** The history that a fold worker writes for a test, a day at a time, and how to read it. */
import { beforeEach } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { pledgeEvent } from '../events/sample-events.ts'
import { createIngest, createTestFoldWorker, type TestFoldWorker } from './model-tables.ts'
import { createStampClock, dayMs, type StampClock } from './stamp-clock.ts'
import { useModelTables } from './use-model-tables.ts'

/** Opens a world for each test of a file. */
export function useHistory() {
  const model = useModelTables()
  let ingest: (events: readonly ChangeEvent[]) => Promise<void>

  const world = {
    model,
    databases: undefined as unknown as Databases,
    clock: undefined as unknown as StampClock,
    worker: undefined as unknown as TestFoldWorker,
    /** Opens another world. The test gives the databases of this one back. */
    async open(): Promise<void> {
      world.databases = await model.freshDatabases()
      world.clock = createStampClock()
      // Midday, so that no test crosses a midnight by accident.
      world.clock.moveBeforeMidnight(0)
      world.clock.moveForward(dayMs / 2)
      world.worker = createTestFoldWorker(world.clock.on(model.tables), world.databases)
      await world.worker.foldWorker.acquireLeadership()
      ingest = createIngest(model.tables, world.databases)
    },
    ingest: (events: readonly ChangeEvent[]) => ingest(events),
    async fold(...events: ChangeEvent[]): Promise<void> {
      await ingest(events)
      await world.worker.foldWorker.fold()
    },
    /** As the clock of the fold worker's process sees it, too. */
    nextDay(): void {
      world.clock.moveForward(dayMs)
      world.worker.advance(dayMs)
    },
    daysAgo: (days: number): number => world.clock.now() - days * dayMs,
    pledge: (campaign_id: string, pledge_id: string, platform_amount_minor: number, ago = 0): ChangeEvent =>
      pledgeEvent({ campaign_id, pledge_id, platform_amount_minor, changed_at: world.daysAgo(ago) }),
    /** VIEWS stands for the database of the views. */
    rows: (query: string) => model.tables.rows({ query: query.replaceAll('VIEWS', world.databases.views) }),
    funding: () =>
      world.rows(`SELECT new_pledged_platform AS new, opening_platform AS opening, departed_platform AS departed,
              pledged_platform AS standing, campaigns FROM VIEWS.funding_days ORDER BY day`),
    /** The days of a campaign, by how long ago they were. */
    daysOf(campaign: string) {
      const today = Math.floor(world.clock.now() / dayMs)
      return world.rows(`SELECT ${today} - toInt32(day) AS ago, source, status, pledged_platform AS pledged, backer_count AS backers,
                     pledge_count AS pledges, follower_count AS followers, ${today} - toInt32(complete_from) AS complete
                   FROM VIEWS.campaign_days WHERE campaign_id = '${campaign}' ORDER BY day`)
    },
  }
  beforeEach(async () => {
    await world.open()
    return () => model.giveBack(world.databases)
  })
  return world
}
