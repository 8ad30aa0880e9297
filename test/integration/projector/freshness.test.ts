/** The gauges that alerts use: right while the fold is stuck, while ClickHouse is away, and after the projector stopped. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type RebuildDetail,
  type RebuildRequest,
  rebuildUnderWay,
  writeRebuild,
} from '../../../services/generations/rebuild-log.ts'
import type { EventReader } from '../../../services/log/port.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import type { Tables } from '../../../services/tables/port.ts'
import {
  isFoldRecord,
  lostConnection,
  obstructed,
  type TablesCall,
} from '../../support/clickhouse/faulty-tables.ts'
import { campaignEvent, newRecordOf, noEvent } from '../../support/events/sample-events.ts'
import { createIngest } from '../../support/projector/model-tables.ts'
import { type RunningProjector, useProjector } from '../../support/projector/running-projector.ts'

const world = useProjector({ mayFail: true })
let tables: Tables
/** The statements that fail at present. */
let isBroken: (call: TablesCall) => boolean
/** How far the clock of the projectors is ahead, ms. */
let aheadMs: number

beforeEach(() => {
  aheadMs = 0
  isBroken = () => false
  tables = obstructed(world.tables, {
    before: call => {
      if (isBroken(call)) throw lostConnection()
    },
  })
})
afterEach(() => {
  isBroken = () => false
})

function start(own: Partial<EventReader> = {}, settings: Record<string, string> = {}): RunningProjector {
  return world.start({
    ...{ tables, reader: { ...world.reader, ...own } },
    settings: { PLEDGEVIEW_RETRY_MS_MAX: '600000', ...settings },
    rebuild: () => rebuildUnderWay({ tables, base: world.databases.base }),
    now: () => Date.now() + aheadMs,
  })
}

/** The values of a scrape, by metric and labels. */
async function scrape({ service, metrics }: RunningProjector): Promise<Record<string, number>> {
  await service.beforeScrape()
  const text = await metrics.registry.metrics()
  return Object.fromEntries(
    [...text.matchAll(/^pledgeview_(\S+) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]),
  )
}

/** A reader that holds no partition with records. */
const nothing: EventReader['poll'] = async ({ waitMsMax }, signal) => {
  await sleep(waitMsMax, signal)
  return { records: [], positions: [], assignment: 'none' }
}
const campaign = (id: string, version = 1) => newRecordOf(campaignEvent({ campaign_id: id, version }))
const campaignLag = 'lag_seconds{topic="campaigns",partition="0"}'

test('freshness grows while the fold is stuck, and is 0 once everything is visible', async () => {
  const projector = start()
  await world.writer.append([campaign('a')])
  await projector.drained()
  const before = { freshness_seconds: 0, [campaignLag]: 0, is_leader: 1, projector_running: 1 }
  await expect.poll(() => scrape(projector)).toMatchObject(before)

  let foldsThatFailed = 0
  isBroken = call => isFoldRecord(call) && ++foldsThatFailed > 0
  await world.writer.append([campaign('a', 2)])
  // Before a fold fails, one may find nothing to fold and complete, at whatever time the clock shows then.
  await expect.poll(() => foldsThatFailed).toBeGreaterThan(0)
  await expect.poll(async () => (await scrape(projector))[campaignLag]).toBe(0)
  aheadMs = 300_000
  // What the tables say late counts for the next scrape.
  await expect.poll(async () => (await scrape(projector)).freshness_seconds).toBeGreaterThanOrEqual(300)
  const stuck = await scrape(projector)
  expect(stuck.freshness_seconds).toBeLessThan(400)
  expect(stuck[campaignLag]).toBe(0)
  const completed = stuck.fold_completed_timestamp_seconds ?? 0
  expect((await scrape(projector)).fold_completed_timestamp_seconds).toBe(completed)
  expect(completed).toBeLessThan(Date.now() / 1000 + 1)

  isBroken = () => false
  await projector.drained()
  await expect.poll(async () => (await scrape(projector)).freshness_seconds).toBe(0)
  const after = await scrape(projector)
  expect(after.fold_completed_timestamp_seconds).toBeGreaterThan(completed)
})

test('lag and freshness grow while ClickHouse is away, and an event that was visible before does not count', async () => {
  const projector = start()
  await world.writer.append([campaign('a')])
  await projector.drained()
  isBroken = () => true
  aheadMs = 100_000
  expect(await scrape(projector)).toMatchObject({ freshness_seconds: 0, [campaignLag]: 0, clickhouse_up: 0 })

  await world.writer.append([campaign('b')])
  await expect.poll(async () => (await scrape(projector))[campaignLag]).toBeGreaterThanOrEqual(100)
  aheadMs = 500_000
  const away = await scrape(projector)
  expect(away[campaignLag]).toBeGreaterThanOrEqual(500)
  expect(away.freshness_seconds).toBeGreaterThanOrEqual(500)

  isBroken = () => false
  await projector.drained()
  await expect.poll(() => scrape(projector)).toMatchObject({ freshness_seconds: 0, [campaignLag]: 0 })
})

test('a leader whose first folds fail tells since when it leads, and how old what a dead projector wrote is', async () => {
  const ingest = createIngest(world.tables, world.databases, 'dead', () => 1_000)
  await ingest([campaignEvent({ campaign_id: 'a' })])
  let foldsThatFailed = 0
  isBroken = call => isFoldRecord(call) && ++foldsThatFailed > 0
  const startedAt = Date.now() / 1000
  const projector = start()
  await expect.poll(() => foldsThatFailed).toBeGreaterThan(0)
  const { fold_completed_timestamp_seconds: since } = await scrape(projector)
  expect(since).toBeGreaterThanOrEqual(startedAt)
  await expect.poll(async () => (await scrape(projector)).freshness_seconds).toBeGreaterThan(startedAt - 100)
  aheadMs = 300_000
  const before = foldsThatFailed
  // After a fold that failed it takes the leadership again.
  await expect.poll(() => foldsThatFailed).toBeGreaterThan(before + 1)
  expect((await scrape(projector)).fold_completed_timestamp_seconds).toBe(since)
  isBroken = () => false
  await expect.poll(async () => (await scrape(projector)).freshness_seconds).toBe(0)
})

test('a projector that does not lead knows when its events are visible', async () => {
  const follower = start({ leads: () => false })
  await world.writer.append([campaign('a')])
  await expect
    .poll(async () => (await scrape(follower))['events_total{topic="campaigns",outcome="accepted"}'])
    .toBe(1)
  aheadMs = 50_000
  // What the tables say late counts for the next scrape.
  await expect.poll(async () => (await scrape(follower)).freshness_seconds).toBeGreaterThanOrEqual(50)
  expect(await scrape(follower)).toMatchObject({ is_leader: 0, fold_completed_timestamp_seconds: 0 })
  const leader = start({ poll: nothing })
  await expect.poll(async () => (await scrape(follower)).freshness_seconds).toBe(0)
  expect((await scrape(leader)).is_leader).toBe(1)
})

test('a projector that stopped says so, and the age of what it did not commit goes on growing', async () => {
  await world.writer.append([noEvent])
  const settings = { PLEDGEVIEW_REJECTS_MIN: '1', PLEDGEVIEW_REJECT_SHARE_MAX: '0.1' }
  const projector = start({}, settings)
  await expect(projector.done).rejects.toThrow('Too many')
  aheadMs = 1_000_000
  const stopped = await scrape(projector)
  expect(stopped.projector_running).toBe(0)
  expect(stopped.rejects_stored).toBe(0)
  const ages = Object.entries(stopped).filter(([name]) => name.startsWith('lag_seconds'))
  expect(Math.max(...ages.map(([, seconds]) => seconds))).toBeGreaterThanOrEqual(1_000)
})

test('a rebuild that is under way has its phase and the time since its last heartbeat', async () => {
  const projector = start()
  const silence = 'rebuild_silent_seconds'
  const phase = 'rebuild_phase{phase="folding"}'
  await expect.poll(() => scrape(projector)).toMatchObject({ [silence]: 0, clickhouse_up: 1 })
  const request = { kind: 'rebuild' } as RebuildRequest
  const detail = { request, phaseMs: {} } as RebuildDetail
  const state = { id: 'r', run: 'rebuilder', attempt: 1, generation: 2, detail }
  const log = { tables: world.tables, base: world.databases.base }
  await writeRebuild(log, { ...state, phase: 'folding' })
  await expect.poll(async () => (await scrape(projector))[phase]).toBe(1)
  await expect.poll(async () => (await scrape(projector))[silence]).toBeGreaterThan(0)
  // Its clock was ahead, and the process dies.
  await log.tables.run({
    query: `INSERT INTO ${log.base}.generation_log (kind, generation, attempt, run, detail, written_at)
            SELECT kind, generation, attempt, run, detail, written_at + INTERVAL 1 HOUR FROM ${log.base}.generation_log
            WHERE run = 'rebuilder'`,
  })
  await scrape(projector)
  await expect.poll(async () => (await scrape(projector))[silence]).toBeGreaterThan(0)
  await writeRebuild(log, { ...state, phase: 'rebuilt' })
  await expect.poll(async () => (await scrape(projector))[phase]).toBeUndefined()
  expect((await scrape(projector))[silence]).toBe(0)
})
