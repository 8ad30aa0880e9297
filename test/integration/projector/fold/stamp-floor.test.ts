/**
 * The stamp floor on a real ClickHouse: no stamp is below what was recorded, and no watermark above it. A floor in the future
 * is what a clock that steps back leaves behind.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { SupersededFoldWorker } from '../../../../services/projector/fold/fold-epochs.ts'
import type { ClockStep } from '../../../../services/projector/fold/stamp-floor.ts'
import { createStampFloor } from '../../../../services/projector/fold/stamp-floor.ts'
import { snapshotStatement } from '../../../../services/query/views/statements.ts'
import { readNextStamp } from '../../../../services/rebuild/stamp-changed.ts'
import type { Databases } from '../../../../services/shared/tables/port.ts'
import {
  createIngest,
  createTestFoldWorker,
  type ModelTables,
  openModelTables,
} from '../../../support/model-tables.ts'
import { campaignEvent } from '../../../support/sample-events.ts'

const hourMs = 3_600_000
const commitHorizonMs = 5_000

describe('the stamp floor', () => {
  let model: ModelTables
  let databases: Databases
  let ingest: (events: readonly ChangeEvent[]) => Promise<void>

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  beforeEach(async () => {
    databases = await model.freshDatabases()
    ingest = createIngest(model.tables, databases)
    return () => model.drop(databases)
  })

  async function clock(): Promise<number> {
    const [row] = await model.tables.rows<{ now: number }>({
      query: "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS now",
    })
    return row?.now ?? 0
  }

  /** Writes a floor as a leader would have when the clock showed this time. */
  async function reach(at: number, shard = ''): Promise<void> {
    await model.tables.run({
      query: `INSERT INTO ${databases.model}.stamp_floor (shard, reached)
              SELECT {shard:String}, fromUnixTimestamp64Milli({at:Int64}, 'UTC') SETTINGS async_insert = 0`,
      query_params: { at, shard },
    })
  }

  async function stamps(): Promise<Record<string, number>> {
    const rows = await model.tables.rows<{ id: string; at: number }>({
      query: `SELECT campaign_id AS id, toUnixTimestamp64Milli(updated_at) AS at FROM ${databases.views}.campaigns`,
    })
    return Object.fromEntries(rows.map(({ id, at }) => [id, at]))
  }

  /** The watermark of a list, Unix ms. */
  async function watermark(): Promise<number> {
    const everything = { status: null, category: null, sort: 'newest', updatedSince: null } as const
    const [row] = await model.tables.rows<{ as_of: string }>(
      snapshotStatement(everything, databases, { commitHorizonMs, msMax: 10_000 }),
    )
    return Date.parse(`${row?.as_of.replace(' ', 'T')}Z`)
  }

  test('is the least stamp of a fold, of a stamp that is renewed and of a swap, after the clock stepped back by an hour', async () => {
    const { foldWorker } = createTestFoldWorker(model.tables, databases)
    await foldWorker.acquireLeadership()
    const floor = (await clock()) + hourMs
    await reach(floor)
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await foldWorker.fold()
    expect(await stamps()).toEqual({ a: floor })

    // A row of a fold whose end was not seen.
    await model.tables.run({
      query: `INSERT INTO ${databases.model}.campaigns (campaign_id, fold_id, updated_at)
              SELECT 'b', max(fold_id) + 1, now64(3, 'UTC') FROM ${databases.model}.fold_log SETTINGS async_insert = 0`,
    })
    await createTestFoldWorker(model.tables, databases, { holder: 'next' }).foldWorker.acquireLeadership()
    const { b = 0, ...others } = await stamps()
    expect(others).toEqual({ a: floor })
    expect(b).toBeGreaterThanOrEqual(floor)
    const next = await readNextStamp(model.tables, databases)
    expect(Date.parse(`${next.replace(' ', 'T')}Z`)).toBeGreaterThanOrEqual(floor)
    expect(await watermark()).toBeLessThanOrEqual((await clock()) - commitHorizonMs)
  })

  test('is the highest watermark: a list claims nothing that the fold has not finished', async () => {
    expect(await watermark()).toBeGreaterThan((await clock()) - commitHorizonMs - 20_000)
    const floor = (await clock()) - hourMs
    await reach(floor)
    expect(await watermark()).toBe(floor)
    // On a cluster the shard that is furthest behind decides.
    await reach(floor - 1, 'second')
    expect(await watermark()).toBe(floor - 1)
  })

  test('is advanced by the leader while there is nothing to fold, and not by a superseded one', async () => {
    const leader = createTestFoldWorker(model.tables, databases)
    await leader.foldWorker.acquireLeadership()
    const first = await highest()
    expect(first).toBeGreaterThan(0)
    leader.advance(hourMs)
    await leader.foldWorker.fold()
    const second = await highest()
    expect(second).toBeGreaterThan(first)
    const next = createTestFoldWorker(model.tables, databases, { holder: 'next' })
    await next.foldWorker.acquireLeadership()
    const third = await highest()
    leader.advance(hourMs)
    await expect(leader.foldWorker.fold()).rejects.toThrow(SupersededFoldWorker)
    expect(await highest()).toBe(third)
  })

  async function highest(): Promise<number> {
    const [row] = await model.tables.rows<{ at: number }>({
      query: `SELECT toUnixTimestamp64Milli(max(reached)) AS at FROM ${databases.model}.stamp_floor`,
    })
    return row?.at ?? 0
  }
})

describe('a step of the clock', () => {
  test('is reported once, with its size and direction; time that passes and slow answers are no steps', async () => {
    let monotonic = 0
    let now = 1_000_000
    let floor = 0
    let answerMs = 10
    const steps: ClockStep[] = []
    const stampFloor = createStampFloor({
      tables: {
        async rows<Row>() {
          monotonic += answerMs
          now += answerMs
          return [{ now, floor, epoch: '1', holder: 'h' }] as Row[]
        },
        async run() {
          floor = Math.max(floor, now)
        },
      },
      databases: { model: 'model', views: 'views' },
      everyMs: 1_000,
      settleMs: 0,
      sleep: async () => {},
      monotonicMs: () => monotonic,
      onClockStep: step => steps.push(step),
    })
    const term = { epoch: 1n, holder: 'h' }
    const step = { term, foldId: 1n, pieces: 1, piece: 0, msMax: 1, memoryBytesMax: 1 }
    const pass = async (ms: number, steppedMs = 0) => {
      monotonic += ms
      now += ms + steppedMs
      await stampFloor.advance(() => step)
    }
    await pass(2_000)
    await pass(2_000)
    answerMs = 5_000
    await pass(2_000)
    answerMs = 10
    await pass(2_000)
    expect(steps).toEqual([])
    await pass(2_000, -60_000)
    expect(steps).toEqual([{ stepMs: expect.closeTo(-60_000, -2), behindMs: expect.closeTo(58_000, -2) }])
    await pass(2_000)
    expect(steps).toHaveLength(1)
    await pass(2_000, 90_000)
    expect(steps.slice(1)).toEqual([{ stepMs: expect.closeTo(90_000, -2), behindMs: 0 }])
  })
})
