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
  let databases: Databases
  let clock: StampClock
  let worker: TestFoldWorker
  let ingest: (events: readonly ChangeEvent[]) => Promise<void>

  async function open(): Promise<void> {
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
    await open()
    return () => model.giveBack(databases)
  })

  const daysAgo = (days: number) => clock.now() - days * dayMs
  const rows = (query: string) => model.tables.rows({ query: query.replaceAll('VIEWS', databases.views) })

  return {
    model,
    get databases() {
      return databases
    },
    get clock() {
      return clock
    },
    get worker() {
      return worker
    },
    /** Opens another world. The test gives the databases of this one back. */
    open,
    ingest: (events: readonly ChangeEvent[]) => ingest(events),
    async fold(...events: ChangeEvent[]): Promise<void> {
      await ingest(events)
      await worker.foldWorker.fold()
    },
    /** As the clock of the fold worker's process sees it, too. */
    nextDay(): void {
      clock.moveForward(dayMs)
      worker.advance(dayMs)
    },
    daysAgo,
    pledge: (campaign_id: string, pledge_id: string, platform_amount_minor: number, ago = 0): ChangeEvent =>
      pledgeEvent({ campaign_id, pledge_id, platform_amount_minor, changed_at: daysAgo(ago) }),
    /** VIEWS stands for the database of the views. */
    rows,
    funding: () =>
      rows(`SELECT new_pledged_platform AS new, opening_platform AS opening, departed_platform AS departed,
              pledged_platform AS standing, campaigns FROM VIEWS.funding_days ORDER BY day`),
    /** The days of a campaign, by how long ago they were. */
    daysOf(campaign: string) {
      const today = Math.floor(clock.now() / dayMs)
      return rows(`SELECT ${today} - toInt32(day) AS ago, source, status, pledged_platform AS pledged, backer_count AS backers,
                     pledge_count AS pledges, follower_count AS followers, ${today} - toInt32(complete_from) AS complete
                   FROM VIEWS.campaign_days WHERE campaign_id = '${campaign}' ORDER BY day`)
    },
  }
}
