/**
 * Statements whose end nobody saw: what they may have written is stamped anew, so that no poller has passed it, and
 * nothing is recorded before.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { foldCampaignsStatement } from '../../../services/projector/fold-statements.ts'
import { type Databases, TablesError } from '../../../services/shared/tables/port.ts'
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
} from '../../support/faulty-tables.ts'
import { readModelOf } from '../../support/model.ts'
import {
  createIngest,
  createTestFolder,
  expectedReading,
  type ModelTables,
  openModelTables,
  readViews,
  type TestFolder,
} from '../../support/model-tables.ts'
import { apiKeyEvent, campaignEvent } from '../../support/sample-events.ts'

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

  function folderOver(obstacles: Obstacles, holder = 'folder'): TestFolder {
    return createTestFolder(obstructed(model.tables, obstacles), databases, { holder, horizonMs })
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

  /** Throws what `error` makes on the first call that matches, having noted how the stamps were. */
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

  test('a fold that ran unseen is stamped anew at once, and only what it wrote', async () => {
    const calls: TablesCall[] = []
    const folder = folderOver({
      before: call => {
        calls.push(call)
      },
      after: once(call => isCampaignFold(call) && calls.filter(isCampaignFold).length === 2, lostConnection),
    })
    await folder.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'settled' })])
    await folder.folder.fold()
    const settled = (await stamps()).settled
    await ingest([campaignEvent({ campaign_id: 'a' }), campaignEvent({ campaign_id: 'b' })])
    await folder.folder.fold()
    const after = await stamps()
    expect(Object.keys(firstStamps).toSorted()).toEqual(['a', 'b', 'settled'])
    expect(after.a).toBeGreaterThan(firstStamps.a ?? 0)
    expect(after.b).toBeGreaterThan(firstStamps.b ?? 0)
    expect(after.settled).toBe(settled)
    expect(await folder.folder.fold()).toBeUndefined()
    // It may still have been running, for as long as ClickHouse lets it: until then there is nothing to renew.
    expect(folder.sleptMs()).toBeGreaterThanOrEqual(horizonMs)
  })

  test('a departure whose fold ran unseen is stamped anew too, for who follows departures by their stamps', async () => {
    let folds = 0
    const folder = folderOver({ after: once(call => isCampaignFold(call) && ++folds === 2, lostConnection) })
    await folder.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a', version: 1 })])
    await folder.folder.fold()
    await ingest([campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' })])
    await folder.folder.fold()
    const rows = await model.tables.rows<{ is_deleted: number }>({
      query: `SELECT is_deleted FROM ${databases.model}.campaigns WHERE campaign_id = 'a' ORDER BY fold_id`,
    })
    expect(rows.map(row => row.is_deleted)).toEqual([0, 1, 1])
    expect(await stamps()).toEqual({})
  })

  test('a fold that ran unseen before its folder died is stamped anew by the next', async () => {
    const dying = folderOver({
      after: once(isCampaignFold, lostConnection),
      before: call => {
        // Dead: nothing of it reaches the tables any more.
        if (firstStamps.a !== undefined && call.kind === 'run')
          throw new TablesError('dead', { retryable: false })
      },
    })
    firstStamps = {}
    await dying.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(dying.folder.fold()).rejects.toThrow('dead')
    expect(await recordedFolds()).toBe(0)
    const next = createTestFolder(model.tables, databases, { holder: 'next' }).folder
    await next.takeOver()
    const renewed = (await stamps()).a
    expect(renewed).toBeGreaterThan(firstStamps.a ?? 0)
    // It is folded again, and recorded; the row is right already and keeps its new stamp.
    expect(await next.fold()).toMatchObject({ campaigns: 1 })
    expect((await stamps()).a).toBe(renewed)
    expect(await recordedFolds()).toBe(1)
  })

  test('a fold that ended, but later than half the horizon, is stamped anew', async () => {
    const late = folderOver({
      async after(call) {
        if (!isCampaignFold(call) || firstStamps.a !== undefined) return
        firstStamps = await stamps()
        late.advance(horizonMs / 2 + 1)
      },
    })
    firstStamps = {}
    await late.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await late.folder.fold()
    expect((await stamps()).a).toBeGreaterThan(firstStamps.a ?? Number.NaN)
  })

  test('a fold of the keys that ran unseen holds up neither keys nor campaigns', async () => {
    const folder = folderOver({ after: once(isKeyFold, lostConnection) })
    await folder.folder.takeOver()
    await ingest([apiKeyEvent({ key: 'k', account_id: 'acc' }), campaignEvent({ campaign_id: 'a' })])
    await folder.folder.fold()
    const keys = await model.tables.rows({
      query: `SELECT api_key, is_active FROM ${databases.model}.api_keys FINAL`,
    })
    expect(keys).toEqual([{ api_key: 'k', is_active: true }])
    expect(Object.keys(await stamps())).toEqual(['a'])
  })

  test('keys are folded before campaigns, so that a revoked one does not wait', async () => {
    const order: string[] = []
    const folder = folderOver({
      before: call => {
        if (isKeyFold(call)) order.push('keys')
        if (isCampaignFold(call)) order.push('campaigns')
      },
    })
    await folder.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a' }), apiKeyEvent({ key: 'k', account_id: 'acc' })])
    await folder.folder.fold()
    expect(order).toEqual(['keys', 'campaigns'])
  })

  test('a fold that ClickHouse ended for its time is split, finishes, and renews what was written of it', async () => {
    const pieces: unknown[] = []
    const folder = folderOver({
      async before(call) {
        if (!isCampaignFold(call)) return
        pieces.push(call.query_params.pieces)
        if (Number(call.query_params.pieces) >= 16) return
        // Half of it was there already when it was ended.
        const half = { ...call.query_params, pieces: 2, piece: 0 }
        await model.tables.run({ query: call.text, query_params: half })
        if (pieces.length === 1) firstStamps = await stamps()
        throw timeoutExceeded()
      },
    })
    await folder.folder.takeOver()
    const events = Array.from({ length: 40 }, (_, n) => campaignEvent({ campaign_id: `c${n}` }))
    await ingest(events)
    expect(await folder.folder.fold()).toMatchObject({ campaigns: 40, statements: 16 })
    // Only what did not end is split further; what has ended is not run again.
    expect(pieces).toEqual([1, ...Array.from({ length: 4 }, () => [4, 16, 16, 16, 16]).flat()])
    expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf(events)))
    const after = await stamps()
    expect(Object.keys(firstStamps).length).toBeGreaterThan(5)
    for (const [id, stamp] of Object.entries(firstStamps)) expect(after[id]).toBeGreaterThan(stamp)
  })

  test('ClickHouse itself ends a fold that takes longer than it may', async () => {
    await ingest(Array.from({ length: 5_000 }, (_, n) => campaignEvent({ campaign_id: `c${n}` })))
    const { folder } = createTestFolder(model.tables, databases, { holder: 'holder' })
    await folder.takeOver()
    const step = {
      tenure: { epoch: 1n, holder: 'holder' },
      foldId: 2n ** 32n + 9n,
      pieces: 1,
      piece: 0,
      msMax: 1,
    }
    const folded = { touched: { from: {}, to: { test: 1 } }, platformDigits: 2 }
    await expect(model.tables.run(foldCampaignsStatement(databases, step, folded))).rejects.toMatchObject({
      retryable: true,
      type: 'TIMEOUT_EXCEEDED',
    })
  })

  test('a failure that cannot pass surfaces, and the next fold renews the stamps before anything else', async () => {
    const calls: TablesCall[] = []
    const folder = folderOver({
      before: call => {
        if (call.kind === 'run') calls.push(call)
      },
      after: once(isCampaignFold, () => new TablesError('no', { retryable: false, type: 'UNKNOWN_TABLE' })),
    })
    await folder.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(folder.folder.fold()).rejects.toMatchObject({ type: 'UNKNOWN_TABLE' })
    expect(await recordedFolds()).toBe(0)
    calls.length = 0
    await folder.folder.fold()
    expect(calls[0] && isRestamp(calls[0])).toBe(true)
    expect((await stamps()).a).toBeGreaterThan(firstStamps.a ?? 0)
    expect(await recordedFolds()).toBe(1)
  })

  test.each([
    ['was lost before it ran', 'before'],
    ['ran unseen', 'after'],
  ] as const)('a record of a fold that %s is made good, and no stamp moves', async (_, side) => {
    const folder = folderOver({
      [side]: once(call => isFoldRecord(call) && Number(call.query_params.campaigns) > 0, lostConnection),
    })
    await folder.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(folder.folder.fold()).rejects.toMatchObject({ retryable: true })
    await folder.folder.fold()
    expect(await stamps()).toEqual(firstStamps)
    expect(await folder.folder.fold()).toBeUndefined()
    expect(await recordedFolds()).toBe(side === 'after' ? 2 : 1)
  })

  test('retries are bounded, and nothing is recorded while something is in doubt', async () => {
    const counts = { folds: 0, restamps: 0 }
    const folder = folderOver({
      before(call) {
        if (isCampaignFold(call)) counts.folds++
        if (isCampaignFold(call)) throw timeoutExceeded()
      },
    })
    await folder.folder.takeOver()
    await ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(folder.folder.fold()).rejects.toMatchObject({ name: 'TablesError', retryable: true })
    expect(counts.folds).toBe(6)

    const stuck = folderOver({
      before(call) {
        if (isRestamp(call)) counts.restamps++
        if (counts.folds > 6 && isRestamp(call)) throw timeoutExceeded()
        if (isCampaignFold(call)) counts.folds++
        if (isCampaignFold(call)) throw timeoutExceeded()
      },
    })
    await stuck.folder.takeOver()
    counts.restamps = 0
    await expect(stuck.folder.fold()).rejects.toMatchObject({ name: 'TablesError', retryable: true })
    expect(counts.restamps).toBe(6)
    expect(await recordedFolds()).toBe(0)
  })
})
