/**
 * Statements that were not seen to end: what they may have written gets a new stamp, so that no poller misses it. Nothing
 * is recorded before that.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { foldCampaignsStatement } from '../../../../services/projector/fold/fold-statements.ts'
import {
  type CallOptions,
  type Databases,
  type Statement,
  type Tables,
  TablesError,
} from '../../../../services/shared/tables/port.ts'
import {
  isCampaignFold,
  isFoldRecord,
  isKeyFold,
  isRestamp,
  lostConnection,
  type Obstacles,
  obstructed,
  type TablesCall,
  timeoutExceeded,
} from '../../../support/faulty-tables.ts'
import { readModelOf } from '../../../support/model.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  type ModelTables,
  openModelTables,
  readViews,
  type TestFoldWorker,
} from '../../../support/model-tables.ts'
import { apiKeyEvent, campaignEvent } from '../../../support/sample-events.ts'

const horizonMs = 60_000

describe('statements in doubt', () => {
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

  function foldWorkerOver(obstacles: Obstacles, holder = 'fold-worker'): TestFoldWorker {
    return createTestFoldWorker(obstructed(model.tables, obstacles), databases, { holder, horizonMs })
  }

  async function stamps(): Promise<Record<string, number>> {
    const rows = await model.tables.rows<{ id: string; at: number }>({
      query: `SELECT campaign_id AS id, toUnixTimestamp64Milli(updated_at) AS at FROM ${databases.views}.campaigns`,
    })
    return Object.fromEntries(rows.map(({ id, at }) => [id, at]))
  }

  async function recordedFolds(): Promise<number> {
    const [row] = await model.tables.rows<{ folds: number }>({
      query: `SELECT count() AS folds FROM ${databases.model}.fold_log WHERE campaigns > 0`,
    })
    return row?.folds ?? 0
  }

  /** Throws `error` on the first call that matches. Notes the stamps before that. */
  function once(matches: (call: TablesCall) => boolean, error: () => Error) {
    let isSpent = false
    return async (call: TablesCall): Promise<void> => {
      if (isSpent || !matches(call)) return
      isSpent = true
      firstStamps = await stamps()
      throw error()
    }
  }

  let firstStamps: Record<string, number> = {}

  test('of a server that stood still: it goes on with a fold long after its time, and the rows get a new stamp after that', async () => {
    let frozen: (() => Promise<void>) | undefined
    let isSpent = false
    const still: Tables = {
      ...model.tables,
      async run(statement, options) {
        const call: TablesCall = {
          kind: 'run',
          text: statement.query,
          query_params: statement.query_params ?? {},
        }
        if (isSpent || !isCampaignFold(call)) {
          await model.tables.run(statement, options)
          // If nobody waited for the frozen statement, it goes on now: too late for its rows to get a new stamp.
          if (isRestamp(call)) await thaw()
          return
        }
        isSpent = true
        frozen = () => model.tables.run(statement)
        throw lostConnection()
      },
      async rows<T>(statement: Statement, options?: CallOptions): Promise<T[]> {
        const rows = await model.tables.rows<T>(statement, options)
        isAnswering = isSpent
        return rows
      },
    }
    let isAnswering = false
    const foldWorker = createTestFoldWorker(still, databases, {
      horizonMs,
      // The server answers again, and goes on with the statement in the time that it has.
      async sleep() {
        if (isAnswering) await thaw()
      },
    })
    let lateStamps: Record<string, number> = {}
    async function thaw(): Promise<void> {
      const goOn = frozen
      frozen = undefined
      await goOn?.()
      if (goOn) lateStamps = await stamps()
    }
    await foldWorker.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'c1' })])
    await foldWorker.foldWorker.fold()
    expect(Object.keys(lateStamps)).toEqual(['c1'])
    expect((await stamps()).c1).toBeGreaterThan(lateStamps.c1 ?? Number.POSITIVE_INFINITY)
  })

  test('rows of a fold that was not seen to end get a new stamp at once, and no other rows', async () => {
    const calls: TablesCall[] = []
    const tested = foldWorkerOver({
      before: call => {
        calls.push(call)
      },
      after: once(call => isCampaignFold(call) && calls.filter(isCampaignFold).length === 2, lostConnection),
    })
    await tested.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'settled' })])
    await tested.foldWorker.fold()
    const settled = (await stamps()).settled
    await ingest([campaignEvent({ campaign_id: 'a' }), campaignEvent({ campaign_id: 'b' })])
    await tested.foldWorker.fold()
    const after = await stamps()
    expect(Object.keys(firstStamps).toSorted()).toEqual(['a', 'b', 'settled'])
    expect(after.a).toBeGreaterThan(firstStamps.a ?? 0)
    expect(after.b).toBeGreaterThan(firstStamps.b ?? 0)
    expect(after.settled).toBe(settled)
    expect(await tested.foldWorker.fold()).toBeUndefined()
    // The statement may still run, for as long as ClickHouse allows. Until then there is nothing to renew.
    expect(tested.sleptMs()).toBeGreaterThanOrEqual(horizonMs)
  })

  test('a departure in a fold that was not seen to end gets a new stamp too, for pollers that follow departures', async () => {
    let folds = 0
    const tested = foldWorkerOver({
      after: once(call => isCampaignFold(call) && ++folds === 2, lostConnection),
    })
    // A merge would leave one of the rows that are counted.
    await model.tables.run({ query: `SYSTEM STOP MERGES ${databases.model}.campaigns` })
    await tested.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a', version: 1 })])
    await tested.foldWorker.fold()
    await ingest([campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' })])
    await tested.foldWorker.fold()
    const rows = await model.tables.rows<{ is_deleted: number }>({
      query: `SELECT is_deleted FROM ${databases.model}.campaigns WHERE campaign_id = 'a' ORDER BY fold_id`,
    })
    expect(rows.map(row => row.is_deleted)).toEqual([0, 1, 1])
    expect(await stamps()).toEqual({})
  })

  test('after a fold worker died in a fold, the next one gives its rows a new stamp', async () => {
    const dying = foldWorkerOver({
      after: once(isCampaignFold, lostConnection),
      before: call => {
        // The process is dead: none of its statements reaches the tables any more.
        if (firstStamps.a !== undefined && call.kind === 'run')
          throw new TablesError('dead', { retryable: false })
      },
    })
    firstStamps = {}
    await dying.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(dying.foldWorker.fold()).rejects.toThrow('dead')
    expect(await recordedFolds()).toBe(0)
    const next = createTestFoldWorker(model.tables, databases, { holder: 'next' }).foldWorker
    await next.acquireLeadership()
    const renewed = (await stamps()).a
    expect(renewed).toBeGreaterThan(firstStamps.a ?? 0)
    // It is folded again and recorded. The row is already right and keeps its new stamp.
    expect(await next.fold()).toMatchObject({ campaigns: 1 })
    expect((await stamps()).a).toBe(renewed)
    expect(await recordedFolds()).toBe(1)
  })

  test('a fold that ended, but later than half the horizon, gets a new stamp', async () => {
    const late = foldWorkerOver({
      async after(call) {
        if (!isCampaignFold(call) || firstStamps.a !== undefined) return
        firstStamps = await stamps()
        late.advance(horizonMs / 2 + 1)
      },
    })
    firstStamps = {}
    await late.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await late.foldWorker.fold()
    expect((await stamps()).a).toBeGreaterThan(firstStamps.a ?? Number.NaN)
  })

  test('a fold of the keys that was not seen to end delays neither keys nor campaigns', async () => {
    const tested = foldWorkerOver({ after: once(isKeyFold, lostConnection) })
    await tested.foldWorker.acquireLeadership()
    await ingest([apiKeyEvent({ key: 'k', account_id: 'acc' }), campaignEvent({ campaign_id: 'a' })])
    await tested.foldWorker.fold()
    const keys = await model.tables.rows({
      query: `SELECT api_key, is_active FROM ${databases.model}.api_keys FINAL`,
    })
    expect(keys).toEqual([{ api_key: 'k', is_active: true }])
    expect(Object.keys(await stamps())).toEqual(['a'])
  })

  test('keys are folded before campaigns, so that a revoked one does not wait', async () => {
    const order: string[] = []
    const tested = foldWorkerOver({
      before: call => {
        if (isKeyFold(call)) order.push('keys')
        if (isCampaignFold(call)) order.push('campaigns')
      },
    })
    await tested.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a' }), apiKeyEvent({ key: 'k', account_id: 'acc' })])
    await tested.foldWorker.fold()
    expect(order).toEqual(['keys', 'campaigns'])
  })

  test('a fold that ClickHouse cancelled is split, finishes, and gives a new stamp to what was written', async () => {
    const pieces: unknown[] = []
    const tested = foldWorkerOver({
      async before(call) {
        if (!isCampaignFold(call)) return
        pieces.push(call.query_params.pieces)
        if (Number(call.query_params.pieces) >= 16) return
        // Half of it was already written when it was cancelled.
        const half = { ...call.query_params, pieces: 2, piece: 0 }
        await model.tables.run({ query: call.text, query_params: half })
        if (pieces.length === 1) firstStamps = await stamps()
        throw timeoutExceeded()
      },
    })
    await tested.foldWorker.acquireLeadership()
    const events = Array.from({ length: 40 }, (_, n) => campaignEvent({ campaign_id: `c${n}` }))
    await ingest(events)
    expect(await tested.foldWorker.fold()).toMatchObject({ campaigns: 40, statements: 16 })
    // Only what did not end is split further. What has ended is not run again.
    expect(pieces).toEqual([1, ...Array.from({ length: 4 }, () => [4, 16, 16, 16, 16]).flat()])
    expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf(events)))
    const after = await stamps()
    expect(Object.keys(firstStamps).length).toBeGreaterThan(5)
    for (const [id, stamp] of Object.entries(firstStamps)) expect(after[id]).toBeGreaterThan(stamp)
  })

  test('ClickHouse itself cancels a fold that takes too long', async () => {
    await ingest(Array.from({ length: 5_000 }, (_, n) => campaignEvent({ campaign_id: `c${n}` })))
    const { foldWorker } = createTestFoldWorker(model.tables, databases, { holder: 'holder' })
    await foldWorker.acquireLeadership()
    const step = {
      term: { epoch: 1n, holder: 'holder' },
      foldId: 2n ** 32n + 9n,
      pieces: 1,
      piece: 0,
      msMax: 1,
      memoryBytesMax: 1_000_000_000,
    }
    const folded = { touched: { from: {}, to: { test: 1 } }, platformDigits: 2 }
    await expect(model.tables.run(foldCampaignsStatement(databases, step, folded))).rejects.toMatchObject({
      retryable: true,
      type: 'TIMEOUT_EXCEEDED',
    })
  })

  test('a failure that is not retryable is thrown, and the next fold renews the stamps first', async () => {
    const calls: TablesCall[] = []
    const tested = foldWorkerOver({
      before: call => {
        if (call.kind === 'run') calls.push(call)
      },
      after: once(isCampaignFold, () => new TablesError('no', { retryable: false, type: 'UNKNOWN_TABLE' })),
    })
    await tested.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(tested.foldWorker.fold()).rejects.toMatchObject({ type: 'UNKNOWN_TABLE' })
    expect(await recordedFolds()).toBe(0)
    calls.length = 0
    await tested.foldWorker.fold()
    expect(calls[0] && isRestamp(calls[0])).toBe(true)
    expect((await stamps()).a).toBeGreaterThan(firstStamps.a ?? 0)
    expect(await recordedFolds()).toBe(1)
  })

  test.each([
    ['was lost before it ran', 'before'],
    ['ran unseen', 'after'],
  ] as const)('a record of a fold that %s is made good, and no stamp moves', async (_, side) => {
    const tested = foldWorkerOver({
      [side]: once(call => isFoldRecord(call) && Number(call.query_params.campaigns) > 0, lostConnection),
    })
    await tested.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(tested.foldWorker.fold()).rejects.toMatchObject({ retryable: true })
    await tested.foldWorker.fold()
    expect(await stamps()).toEqual(firstStamps)
    expect(await tested.foldWorker.fold()).toBeUndefined()
    expect(await recordedFolds()).toBe(side === 'after' ? 2 : 1)
  })

  test('retries are bounded, and nothing is recorded while something is in doubt', async () => {
    const counts = { folds: 0, restamps: 0 }
    const tested = foldWorkerOver({
      before(call) {
        if (isCampaignFold(call)) counts.folds++
        if (isCampaignFold(call)) throw lostConnection()
      },
    })
    await tested.foldWorker.acquireLeadership()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(tested.foldWorker.fold()).rejects.toMatchObject({ name: 'TablesError', retryable: true })
    expect(counts.folds).toBe(6)

    const stuck = foldWorkerOver({
      before(call) {
        if (isRestamp(call)) counts.restamps++
        if (counts.folds > 6 && isRestamp(call)) throw timeoutExceeded()
        if (isCampaignFold(call)) counts.folds++
        if (isCampaignFold(call)) throw lostConnection()
      },
    })
    await stuck.foldWorker.acquireLeadership()
    counts.restamps = 0
    await expect(stuck.foldWorker.fold()).rejects.toMatchObject({ name: 'TablesError', retryable: true })
    expect(counts.restamps).toBe(6)
    expect(await recordedFolds()).toBe(0)
  })
})
