/** Campaigns that cannot be folded within the bounds of a fold: they hold no other campaign, and lose no change. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import type { SetAsideChange } from '../../../../services/projector/fold/set-aside.ts'
import { setAsideStatement } from '../../../../services/projector/fold/set-aside-statements.ts'
import { type Databases, TablesError } from '../../../../services/shared/tables/port.ts'
import {
  isCampaignFold,
  isStaging,
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
import { campaignEvent, pledgeEvent } from '../../../support/sample-events.ts'

const horizonMs = 60_000
const others = Array.from({ length: 30 }, (_, n) => campaignEvent({ campaign_id: `c${n}` }))
const heavy = (version: number): ChangeEvent[] => [
  campaignEvent({ campaign_id: 'heavy', version, title: `version ${version}` }),
  pledgeEvent({ campaign_id: 'heavy', pledge_id: `p${version}` }),
]

describe('a campaign that cannot be folded within the bounds', () => {
  let model: ModelTables
  let databases: Databases
  let ingest: (events: readonly ChangeEvent[]) => Promise<void>
  let reports: (SetAsideChange & { all: number })[]

  beforeAll(async () => {
    model = await openModelTables()
  })
  afterAll(() => model.dispose())
  beforeEach(async () => {
    databases = await model.freshDatabases()
    ingest = createIngest(model.tables, databases)
    reports = []
    return () => model.drop(databases)
  })

  async function leader(obstacles: Obstacles, settings: { memoryBytesMax?: number } = {}) {
    const tested = createTestFoldWorker(obstructed(model.tables, obstacles), databases, {
      holder: `fold-worker-${Math.random()}`,
      horizonMs,
      onSetAside: (all, change) => change && reports.push({ ...change, all: all.length }),
      ...settings,
    })
    await tested.foldWorker.acquireLeadership()
    return tested
  }

  /** Whether the campaign is among those that a fold's statement looks at. */
  async function looksAt(id: string, { query_params }: TablesCall): Promise<boolean> {
    const {
      pieces,
      piece,
      except = [],
    } = query_params as unknown as { pieces: number; piece: number; except?: string[] }
    const { from, to } = query_params
    const rows = await model.tables.rows<{ id: string }>({
      query: `SELECT DISTINCT arrayJoin(campaign_ids) AS id FROM ${databases.model}.batch_log
              WHERE sequence > {from:Map(String, UInt64)}[projector]
                AND sequence <= {to:Map(String, UInt64)}[projector] ORDER BY id`,
      query_params: { from, to },
    })
    const ids = rows.map(row => row.id).filter(one => !except.includes(one))
    const place = (n: number) => Math.floor((ids.length * n) / pieces)
    return ids.slice(place(piece), place(piece + 1)).includes(id)
  }

  const tooSlow: Obstacles['before'] = async call => {
    if (isCampaignFold(call) && (await looksAt('heavy', call))) throw timeoutExceeded()
  }

  /** Folds again and again, as the fold loop does, until the condition holds. */
  async function foldUntil(
    { foldWorker, advance }: TestFoldWorker,
    isDone: () => boolean,
    { pauseMs = 0 } = {},
  ): Promise<void> {
    for (let n = 0; n < 1_000 && !isDone(); n++) {
      await foldWorker.fold()
      advance(pauseMs)
      await delay(20)
    }
    expect(isDone()).toBe(true)
  }

  const events = () => reports.map(({ event }) => event)
  const readHeavy = async () =>
    (await readViews(model.tables, databases)).campaigns.filter(
      row => (row as { campaign_id: string }).campaign_id === 'heavy',
    )
  const whole = (all: readonly ChangeEvent[]) => expectedReading(readModelOf(all))

  test('does not hold the others: they are folded and recorded at once', async () => {
    const { foldWorker } = await leader({ before: tooSlow })
    await ingest([...others, ...heavy(1)])
    await foldWorker.fold()
    expect(await readViews(model.tables, databases)).toEqual(whole(others))
    expect(await foldWorker.fold()).toBeUndefined()
  })

  test('is folded alone, and then shown with a stamp that no poller has passed', async () => {
    const tested = await leader({ before: tooSlow })
    await ingest([...others, ...heavy(1)])
    await tested.foldWorker.fold()
    expect(reports).toMatchObject([{ campaign: 'heavy', event: 'set aside', reason: 'TIMEOUT_EXCEEDED' }])
    expect(await readHeavy()).toEqual([])
    const [row] = await model.tables.rows<{ now: string }>({
      query: "SELECT toString(now64(3, 'UTC')) AS now",
    })
    await foldUntil(tested, () => reports.length > 1)
    expect(await readViews(model.tables, databases)).toEqual(whole([...others, ...heavy(1)]))
    const [shown] = await model.tables.rows<{ at: string; staged: number }>({
      query: `SELECT toString(updated_at) AS at, (SELECT count() FROM ${databases.model}.staged_campaigns) AS staged
              FROM ${databases.views}.campaigns WHERE campaign_id = 'heavy'`,
    })
    expect(shown && row && shown.at > row.now).toBe(true)
    expect(shown?.staged).toBe(0)
  })

  test('keeps the stamp under which it was shown when another process folds', async () => {
    const tested = await leader({ before: tooSlow })
    await ingest([...others, ...heavy(1)])
    await tested.foldWorker.fold()
    await foldUntil(tested, () => reports.length > 1)
    const stamps = () =>
      model.tables.rows<{ at: string }>({
        query: `SELECT toString(updated_at) AS at FROM ${databases.views}.campaigns WHERE campaign_id = 'heavy'`,
      })
    const shown = await stamps()
    expect(shown).toHaveLength(1)
    await leader({})
    expect(await stamps()).toEqual(shown)
  })

  test('is shown with a stamp that is not below the stamp floor, also if ClickHouse’s clock is behind the floor', async () => {
    const tested = await leader({ before: tooSlow })
    await ingest([...others, ...heavy(1)])
    await tested.foldWorker.fold()
    await model.tables.run({
      query: `INSERT INTO ${databases.model}.stamp_floor (shard, reached)
              SELECT '', now64(3, 'UTC') + INTERVAL 1 HOUR SETTINGS async_insert = 0`,
    })
    await foldUntil(tested, () => reports.length > 1)
    const [shown] = await model.tables.rows<{ aheadS: number }>({
      query: `SELECT dateDiff('second', now64(3, 'UTC'), updated_at) AS aheadS
              FROM ${databases.views}.campaigns WHERE campaign_id = 'heavy'`,
    })
    expect(shown?.aheadS).toBeGreaterThan(3_000)
  })

  test('is folded again if it changes while it is folded alone, and belongs to the others when it is quick', async () => {
    let isHeld = false
    let release = () => {}
    const tested = await leader({
      before: tooSlow,
      async after(call) {
        // The first fold alone has read the ledger, and has not ended.
        if (!isStaging(call) || isHeld) return
        isHeld = true
        await new Promise<void>(resolve => {
          release = resolve
        })
      },
    })
    await ingest([...others, ...heavy(1)])
    await foldUntil(tested, () => isHeld)
    await ingest(heavy(2))
    await tested.foldWorker.fold()
    expect(await tested.foldWorker.fold()).toBeUndefined()
    release()
    await foldUntil(tested, () => events().includes('back'))
    expect(await readViews(model.tables, databases)).toEqual(whole([...others, ...heavy(1), ...heavy(2)]))
    expect(reports.at(-1)).toMatchObject({ campaign: 'heavy', all: 0 })
  })

  test('counts as behind whenever its batches count as folded and it is not', async () => {
    let advance = (_ms: number) => {}
    const tested = await leader({
      before: tooSlow,
      // Alone it takes longer than a common fold may, so it stays set aside.
      after: call => (isStaging(call) ? advance(horizonMs / 2) : undefined),
    })
    advance = tested.advance
    const isBehind = async () =>
      (await model.tables.rows<{ isBehind: boolean }>(setAsideStatement(databases))).map(row => row.isBehind)
    await ingest(heavy(1))
    await foldUntil(tested, () => events().includes('folded alone'))
    expect(await isBehind()).toEqual([false])
    await ingest(heavy(2))
    await tested.foldWorker.fold()
    expect(await isBehind()).toEqual([true])
    await foldUntil(tested, () => events().length === 3)
    expect(await isBehind()).toEqual([false])
    expect(await readViews(model.tables, databases)).toEqual(whole([...heavy(1), ...heavy(2)]))
  })

  test('is known to the next leader, which folds it', async () => {
    const first = await leader({ before: tooSlow })
    await ingest([...others, ...heavy(1)])
    await first.foldWorker.fold()
    const second = await leader({ before: tooSlow })
    await foldUntil(second, () => events().includes('back'))
    expect(await readViews(model.tables, databases)).toEqual(whole([...others, ...heavy(1)]))
  })

  test.each(['before', 'after'] as const)(
    'is known to the next leader, also if the connection was lost %s it was recorded',
    async side => {
      let isLost = false
      const first = await leader({
        before: tooSlow,
        [side](call: TablesCall) {
          if (side === 'before' && isCampaignFold(call)) return tooSlow?.(call)
          if (isLost || !call.text.includes('.set_aside (')) return
          isLost = true
          throw lostConnection()
        },
      })
      await ingest([...others, ...heavy(1)])
      await expect(first.foldWorker.fold()).rejects.toMatchObject({ retryable: true })
      await first.foldWorker.fold()
      const second = await leader({ before: tooSlow })
      await foldUntil(second, () => events().includes('back'))
      expect(await readViews(model.tables, databases)).toEqual(whole([...others, ...heavy(1)]))
    },
  )

  test('stays set aside if it cannot be folded alone either, and is tried again, each time later', async () => {
    let attempts = 0
    const tested = await leader({
      async before(call) {
        await tooSlow(call)
        if (!isStaging(call)) return
        attempts++
        throw timeoutExceeded()
      },
    })
    await ingest([...others, ...heavy(1)])
    // It is tried again after 10, 20 and 40 s of the fold worker's clock.
    await foldUntil(tested, () => reports.at(-1)?.failures === 1)
    tested.advance(10_000)
    await foldUntil(tested, () => reports.at(-1)?.failures === 2)
    tested.advance(10_000)
    await tested.foldWorker.fold()
    expect(attempts).toBe(2)
    await foldUntil(tested, () => reports.at(-1)?.failures === 4, { pauseMs: 1_000 })
    expect(events()).toEqual(['set aside', 'not folded', 'not folded', 'not folded', 'not folded'])
    expect(await model.tables.rows(setAsideStatement(databases))).toEqual([
      { campaign: 'heavy', isBehind: true, failures: 4, reason: 'TIMEOUT_EXCEEDED' },
    ])
    await ingest([campaignEvent({ campaign_id: 'later' })])
    await tested.foldWorker.fold()
    expect((await readViews(model.tables, databases)).campaigns).toHaveLength(others.length + 1)
  })

  test('is set aside too if it needs more memory than a fold may use, and is right once it may use more', async () => {
    const tested = await leader({}, { memoryBytesMax: 67_108_864 })
    await model.tables.run({
      query: `INSERT INTO ${databases.model}.pledge_ledger
              SELECT 'heavy', toString(number), 1, true, sipHash64(number), 100, 100, toString(number)
              FROM numbers(600000) SETTINGS async_insert = 0`,
    })
    await ingest([...others, campaignEvent({ campaign_id: 'heavy' })])
    await foldUntil(tested, () => events().includes('not folded'))
    expect(reports.at(-1)).toMatchObject({ campaign: 'heavy', reason: 'MEMORY_LIMIT_EXCEEDED' })
    expect(await readViews(model.tables, databases)).toMatchObject({ campaigns: whole(others).campaigns })
    const next = await leader({})
    await foldUntil(next, () => events().includes('back'))
    expect(await readHeavy()).toMatchObject([{ pledge_count_text: '600000', backer_count_text: '600000' }])
  })

  test('is not blamed for what no fold can do', async () => {
    const denied = new TablesError('not enough privileges', { retryable: false, type: 'ACCESS_DENIED' })
    const tested = await leader({
      before(call) {
        if (isCampaignFold(call)) throw denied
      },
    })
    await ingest([...others, ...heavy(1)])
    await expect(tested.foldWorker.fold()).rejects.toBe(denied)
    expect(reports).toEqual([])
  })

  test('is not blamed if ClickHouse is slow with every fold', async () => {
    const tested: TestFoldWorker = await leader({
      before(call) {
        if (isCampaignFold(call)) tested.advance(horizonMs)
      },
    })
    await ingest([...others, ...heavy(1)])
    await expect(tested.foldWorker.fold()).rejects.toMatchObject({ retryable: true })
    expect(reports).toEqual([])
  })

  test('is not blamed for a lost connection', async () => {
    let losses = 0
    const tested = await leader({
      async before(call) {
        if (!isCampaignFold(call) || losses === 3 || !(await looksAt('heavy', call))) return
        losses++
        throw lostConnection()
      },
    })
    await ingest([...others, ...heavy(1)])
    await tested.foldWorker.fold()
    expect(reports).toEqual([])
    expect(await readViews(model.tables, databases)).toEqual(whole([...others, ...heavy(1)]))
  })
})
