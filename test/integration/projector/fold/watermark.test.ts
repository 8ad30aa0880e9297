/**
 * The watermark on a real ClickHouse: no later stamp is below it, and no list claims more. A watermark in the future is what a clock
 * that steps back leaves behind.
 */

import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { SupersededFoldWorker } from '../../../../services/projector/fold/fold-epochs.ts'
import { stampOf } from '../../../../services/projector/fold/fold-statements.ts'
import { type ClockStep, createWatermark } from '../../../../services/projector/fold/watermark.ts'
import { createObserver } from '../../../../services/projector/observer.ts'
import { snapshotStatement } from '../../../../services/query/lists/list-statements.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { generationOf } from '../../../../services/tables/generation-log.ts'
import { TablesError } from '../../../../services/tables/port.ts'
import { isCampaignFold, obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { campaignEvent } from '../../../support/events/sample-events.ts'
import { clockOf, column, highestWatermark, stampsById } from '../../../support/projector/fold-records.ts'
import { createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { createStampClock } from '../../../support/projector/stamp-clock.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

describe('the watermark', () => {
  const model = useFreshModel()
  const stamps = () => stampsById(model)
  const highest = () => highestWatermark(model)

  /** Writes a watermark as a leader would have when the clock showed this time. */
  async function reach(at: number, shard = ''): Promise<void> {
    await model.tables.run({
      query: `INSERT INTO ${model.databases.read}.watermarks (shard, reached)
              SELECT {shard:String}, fromUnixTimestamp64Milli({at:Int64}, 'UTC') SETTINGS async_insert = 0`,
      query_params: { at, shard },
    })
  }

  /** The watermark of a list, Unix ms. */
  async function watermark(): Promise<number> {
    const everything = { status: null, category: null, sort: 'newest', updatedSince: null } as const
    const [row] = await model.tables.rows<{ as_of: string }>(
      snapshotStatement(everything, model.databases, 10_000),
    )
    return Date.parse(`${row?.as_of.replace(' ', 'T')}Z`)
  }

  test('is the least stamp of a fold and of a swap after the clock stepped back by an hour, and two states have two stamps; on a cluster the shard that is furthest behind decides', async () => {
    expect(await watermark()).toBe(0)
    const { foldWorker } = createTestFoldWorker(model.tables, model.databases)
    await foldWorker.acquireLeadership()
    const reached = (await clockOf(model.tables)) + hourMs
    await reach(reached)
    const seen: number[] = []
    for (const version of [1, 2, 3]) {
      await model.ingest([campaignEvent({ campaign_id: 'a', version, title: `version ${version}` })])
      await foldWorker.fold()
      seen.push((await stamps()).a ?? 0)
      expect(await watermark()).toBeGreaterThanOrEqual(reached)
    }
    expect(seen[0]).toBeGreaterThanOrEqual(reached)
    expect(new Set(seen).size).toBe(3)
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    const [next] = await model.tables.rows<{ stamp: number }>({
      query: `SELECT toUnixTimestamp64Milli(${stampOf(model.databases)}) AS stamp`,
    })
    expect(next?.stamp).toBeGreaterThanOrEqual(await watermark())
    await reach(reached - 1, 'second')
    expect(await watermark()).toBe(reached - 1)
  })

  test('is written between statements only: every stamp of a fold in pieces is at or above the one before it', async () => {
    const pairs: { before: number; stamp: number }[] = []
    let before = 0
    const tested = createTestFoldWorker(
      obstructed(model.tables, {
        async before(call) {
          if (!isCampaignFold(call)) return
          before = await highest()
          tested.advance(1_000)
        },
        async after(call) {
          if (!isCampaignFold(call)) return
          expect(await highest()).toBe(before)
          pairs.push({ before, stamp: Math.max(...Object.values(await stamps())) })
        },
      }),
      model.databases,
      { PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: 1 },
    )
    await tested.foldWorker.acquireLeadership()
    await model.ingest(['a', 'b', 'c'].map(campaign_id => campaignEvent({ campaign_id })))
    await tested.foldWorker.fold()
    expect(pairs).toHaveLength(3)
    for (const [n, pair] of pairs.entries()) {
      expect(pair.stamp).toBeGreaterThanOrEqual(pair.before)
      expect(pair.before).toBeGreaterThan(pairs[n - 1]?.before ?? 0)
    }
  })

  test('is advanced by the leader while there is nothing to fold, and not by a superseded one', async () => {
    const leader = createTestFoldWorker(model.tables, model.databases)
    await leader.foldWorker.acquireLeadership()
    const first = await highest()
    expect(first).toBeGreaterThan(0)
    leader.advance(hourMs)
    await leader.foldWorker.fold()
    const second = await highest()
    expect(second).toBeGreaterThan(first)
    const next = createTestFoldWorker(model.tables, model.databases, { holder: 'next' })
    await next.foldWorker.acquireLeadership()
    const third = await highest()
    leader.advance(hourMs)
    await expect(leader.foldWorker.fold()).rejects.toThrow(SupersededFoldWorker)
    expect(await highest()).toBe(third)
  })

  test('is remembered before any list can say it, and a new leader begins at no less', async () => {
    let remembered = (await clockOf(model.tables)) + hourMs / 2
    const begun = remembered
    const written: number[] = []
    const tested = createTestFoldWorker(
      obstructed(model.tables, {
        async after() {
          written.push(await highest())
          expect(written.at(-1)).toBeLessThanOrEqual(remembered)
        },
      }),
      model.databases,
      {
        PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: 1,
        async rememberWatermark(watermark) {
          remembered = Math.max(remembered, watermark)
          return remembered
        },
      },
    )
    await tested.foldWorker.acquireLeadership()
    expect(await highest()).toBeGreaterThanOrEqual(begun)
    await model.ingest(['a', 'b'].map(campaign_id => campaignEvent({ campaign_id })))
    await tested.foldWorker.fold()
    for (const stamp of Object.values(await stamps())) expect(stamp).toBeGreaterThanOrEqual(begun)
    expect(new Set(written).size).toBeGreaterThan(2)
    expect(await highest()).toBe(remembered)
  })

  test('is not written as long as it cannot be remembered: no epoch is taken, and nothing is folded', async () => {
    let isAway = true
    const { foldWorker, advance } = createTestFoldWorker(model.tables, model.databases, {
      async rememberWatermark(watermark) {
        if (isAway) throw new Error('the log is away')
        return watermark
      },
    })
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(foldWorker.acquireLeadership()).rejects.toThrow('the log is away')
    expect(
      await column(model.tables, `SELECT epoch AS value FROM ${model.databases.ledger}.fold_epochs`),
    ).toEqual([])
    isAway = false
    await foldWorker.acquireLeadership()
    const reached = await highest()
    isAway = true
    advance(1_000)
    await expect(foldWorker.fold()).rejects.toThrow('the log is away')
    expect(await stamps()).toEqual({})
    expect(await highest()).toBe(reached)
  })

  test.each([
    // A piece of a fold looks at the clocks beforehand if the watermark is due, and otherwise the statement itself sees it.
    ['is an hour behind ClickHouse’s', 1_000, /says .*Z, and this process’s clock .*Z.*Set the clock/],
    ['is behind ClickHouse’s, which leapt ahead since then', 0, /far ahead of the clock of this process/],
  ])(
    'is not written by a leader whose own clock %s: nothing is folded until they agree',
    async (_, passed, told) => {
      const clockOfServer = createStampClock()
      let ownBehindMs = 0
      const { foldWorker, advance } = createTestFoldWorker(clockOfServer.on(model.tables), model.databases, {
        now: () => clockOfServer.now() - ownBehindMs,
      })
      await foldWorker.acquireLeadership()
      const reached = await highest()
      await model.ingest([campaignEvent({ campaign_id: 'a' })])
      if (passed === 0) clockOfServer.moveForward(hourMs + 1_000)
      ownBehindMs = hourMs + 1_000
      advance(passed)
      const failure = await foldWorker.fold().catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(TablesError)
      expect(failure).toMatchObject({ retryable: true, message: expect.stringMatching(told) })
      await expect(foldWorker.acquireLeadership()).rejects.toThrow('ClickHouse’s clock says')
      expect(await highest()).toBe(reached)
      expect(await stamps()).toEqual({})
      ownBehindMs = 0
      await foldWorker.acquireLeadership()
      await foldWorker.fold()
      expect(Object.keys(await stamps())).toEqual(['a'])
    },
  )

  test('tells that batches may have expired while ClickHouse’s clock was a month ahead: the next leader folds everything', async () => {
    const clockOfServer = createStampClock()
    clockOfServer.moveForward(31 * dayMs)
    const leapt = ['leapt', 'other'].map(holder =>
      createTestFoldWorker(clockOfServer.on(model.tables), model.databases, { holder, now: Date.now }),
    )
    const next = createTestFoldWorker(model.tables, model.databases, { holder: 'next', now: Date.now })
    await next.foldWorker.acquireLeadership()
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    await model.tables.run({
      query: `ALTER TABLE ${model.databases.ledger}.batch_log DELETE WHERE 1 SETTINGS mutations_sync = 2`,
    })
    for (const { foldWorker } of [...leapt, ...leapt])
      await expect(foldWorker.acquireLeadership()).rejects.toThrow('ClickHouse’s clock says')
    const names = `SELECT DISTINCT projector AS value FROM ${model.databases.ledger}.batch_log`
    expect(await column(model.tables, names)).toEqual([expect.stringMatching(/^leapt-since-/)])
    expect(await stamps()).toEqual({})
    await next.foldWorker.acquireLeadership()
    expect(await next.foldWorker.fold()).toMatchObject({ campaigns: 1 })
    expect(Object.keys(await stamps())).toEqual(['a'])
    expect(await next.foldWorker.fold()).toBeUndefined()
  })
})

describe('a step of the clock', () => {
  test('is reported once, with its size and direction, and counted in a metric; time that passes and slow answers are no steps', async () => {
    let monotonic = 0
    let now = 1_000_000
    let reached = 0
    let answerMs = 10
    const steps: ClockStep[] = []
    const metrics = createMetrics()
    const observer = createObserver({ metrics, logger: pino({ level: 'silent' }) })
    const watermark = createWatermark({
      tables: {
        async rows<Row>() {
          monotonic += answerMs
          now += answerMs
          return [{ now, watermark: reached, epoch: '1', holder: 'h' }] as Row[]
        },
        async run() {},
      },
      line: {
        async run({ query_params }) {
          reached = Math.max(reached, Number(query_params?.reached))
          return undefined
        },
      },
      databases: generationOf({ base: 'model', views: 'views' }, 1),
      monotonicMs: () => monotonic,
      rememberWatermark: async () => {},
      onClockStep(step) {
        steps.push(step)
        observer.onClockStep(step)
      },
    })
    const term = { epoch: 1n, holder: 'h' }
    const step = { term, foldId: 1n, pieces: 1, piece: 0, msMax: 1, memoryBytesMax: 1, platformDigits: 2 }
    const pass = async (ms: number, steppedMs = 0) => {
      monotonic += ms
      now += ms + steppedMs
      await watermark.advance(() => step, 'if due')
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
    for (const direction of ['back', 'forward'])
      expect(await metrics.registry.metrics()).toContain(
        `pledgeview_clock_steps_total{direction="${direction}"} 1`,
      )
  })
})
