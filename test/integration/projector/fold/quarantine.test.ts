/** Campaigns that cannot be folded within the bounds of a fold: they hold no other campaign, lose no change, and leave when deleted. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import type { QuarantineChange } from '../../../../services/projector/fold/quarantine.ts'
import { tablesStatus } from '../../../../services/projector/status.ts'
import type { Config } from '../../../../services/runtime/config.ts'
import { TablesError } from '../../../../services/tables/port.ts'
import {
  isAloneFold,
  isCampaignFold,
  lostConnection,
  type Obstacles,
  obstructed,
  type TablesCall,
  timeoutExceeded,
} from '../../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { campaignEvent, campaignTombstone, pledgeEvent } from '../../../support/events/sample-events.ts'
import {
  createTestFoldWorker,
  expectedReading,
  readViews,
  type TestFoldWorker,
} from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const foldMsMax = 30_000
const others = Array.from({ length: 30 }, (_, n) => campaignEvent({ campaign_id: `c${n}` }))
const heavy = (version: number, id = 'heavy'): ChangeEvent[] => [
  campaignEvent({ campaign_id: id, version, title: `version ${version}` }),
  pledgeEvent({ campaign_id: id, pledge_id: `p${version}` }),
]

describe('a campaign that cannot be folded within the bounds', () => {
  const model = useFreshModel()
  let reports: (QuarantineChange & { all: number })[]
  /** What the metric names. */
  let named: string[]

  beforeEach(async () => {
    reports = []
  })

  async function leader(obstacles: Obstacles, config: Partial<Config> = {}) {
    const tested = createTestFoldWorker(obstructed(model.tables, obstacles), model.databases, {
      holder: `fold-worker-${Math.random()}`,
      PLEDGEVIEW_FOLD_MS_MAX: foldMsMax,
      onQuarantine(all, change) {
        named = all.map(({ campaign }) => campaign)
        if (change) reports.push({ ...change, all: all.length })
      },
      ...config,
    })
    await tested.foldWorker.acquireLeadership()
    return tested
  }

  /** One that has folded the others once, and has met the heavy one in that. */
  async function leaderThatMet(obstacles: Obstacles) {
    const tested = await leader(obstacles)
    await model.ingest([...others, ...heavy(1)])
    await tested.foldWorker.fold()
    return tested
  }

  /** The heavy ones of those that a fold's statement looks at, by their names. */
  async function heavyIn({ text, query_params }: TablesCall): Promise<string[]> {
    const { campaign, began = 0 } = query_params as { campaign?: string; began?: string }
    const { pieces, piece, lasts } = query_params as { pieces: number; piece: number; lasts?: number[] }
    const { ledger: name } = model.databases
    const rows = await model.tables.rows<{ id: string }>({
      query: `SELECT DISTINCT arrayJoin(campaign_ids) AS id FROM ${name}.batch_log
              WHERE sequence > (SELECT max(sequence) FROM ${name}.fold_progress FINAL) AND sequence <= {last:UInt64}
                AND (NOT {leaves_out:Bool} OR id NOT IN
                  (SELECT campaign_id FROM ${name}.quarantine FINAL WHERE is_quarantined AND fold_id < {began:UInt64}))
              ORDER BY id`,
      query_params: { leaves_out: text.includes('.quarantine'), began, last: lasts?.[0] ?? 0 },
    })
    const ids = rows.map(row => row.id)
    const place = (n: number) => Math.floor((ids.length * n) / pieces)
    const own = campaign === undefined ? ids.slice(place(piece), place(piece + 1)) : [campaign]
    return own.filter(id => id.startsWith('heavy'))
  }

  /** No fold can do it. */
  const tooSlowAlone = async (call: TablesCall) => {
    if (isCampaignFold(call) && (await heavyIn(call)).length > 0) throw timeoutExceeded()
  }

  /** The common folds refuse it. */
  const tooSlow = async (call: TablesCall) => {
    if (call.query_params.campaign === undefined) await tooSlowAlone(call)
  }

  /** Its pledges need more memory than `memoryBytesMax`. */
  const writeManyPledges = () =>
    model.tables.run({
      query: `INSERT INTO ${model.databases.ledger}.pledge_ledger
              SELECT 'heavy', toString(number), 1, true, sipHash64(number), 100, 100, toString(number), today()
              FROM numbers(600000) SETTINGS async_insert = 0`,
    })
  const memoryBytesMax = 67_108_864

  /** A hundred campaigns that are in quarantine, with numbers in their ids. */
  const quarantineHundred = (named: string) =>
    model.tables.run({
      query: `INSERT INTO ${model.databases.ledger}.quarantine (campaign_id, fold_id, is_quarantined, failures, reason, since)
              SELECT concat('${named}', toString(number)), 1, true, 1, 'TIMEOUT_EXCEEDED', now64(3, 'UTC') FROM numbers(100)
              SETTINGS async_insert = 0`,
    })

  const events = () => reports.map(({ event }) => event)
  const inStatus = async () => (await tablesStatus(model)).fold.quarantine.map(one => one.campaign_id)
  const views = () => readViews(model.tables, model.databases)
  const whole = (all: readonly ChangeEvent[]) => expectedReading(readModelOf(all))
  const shownIds = async () =>
    (await views()).campaigns.map(row => (row as { campaign_id: string }).campaign_id)

  test('is tried alone, then shown, and takes part in the common folds again if that was quick', async () => {
    let alone = 0
    let isHeavy = true
    const { foldWorker } = await leaderThatMet({
      async before(call) {
        if (isAloneFold(call, 'heavy')) alone++
        if (isHeavy) await tooSlow(call)
      },
    })
    await foldWorker.fold()
    expect(await views()).toEqual(whole([...others, ...heavy(1)]))
    expect(events()).toEqual(['quarantined', 'released'])
    expect(reports.at(-1)).toMatchObject({ campaign: 'heavy', all: 0 })
    isHeavy = false
    await model.ingest(heavy(2))
    await foldWorker.fold()
    expect(await views()).toEqual(whole([...others, ...heavy(1), ...heavy(2)]))
    expect(alone).toBe(1)
  })

  test('that is folded alone in much time stays in quarantine, and is shown again after it changed', async () => {
    const tested: TestFoldWorker = await leaderThatMet({
      before: tooSlow,
      after: call => (isAloneFold(call, 'heavy') ? tested.advance(foldMsMax / 2 + 1) : undefined),
    })
    await tested.foldWorker.fold()
    expect(events()).toEqual(['quarantined', 'folded alone'])
    await model.ingest(heavy(2))
    await tested.foldWorker.fold()
    // Its pause, nine times as long as the try was.
    tested.advance(9 * (foldMsMax / 2 + 1))
    await tested.foldWorker.fold()
    expect(await views()).toEqual(whole([...others, ...heavy(1), ...heavy(2)]))
    expect(events()).toEqual(['quarantined', 'folded alone'])
  })

  test('that fails again and again holds no other, is named in the status, and takes a tenth of the time at most; each of several has its turn', async () => {
    const ids = ['heavy 1', 'heavy 2', 'heavy 3']
    const tries = new Map<string, number>()
    let triedMs = 0
    let totalMs = 0
    const tested = await leader({
      async before(call) {
        const campaign = String(call.query_params.campaign)
        if (isCampaignFold(call) && campaign.startsWith('heavy')) {
          tries.set(campaign, (tries.get(campaign) ?? 0) + 1)
          triedMs += 5_000
          totalMs += 5_000
          tested.advance(5_000)
        }
        await tooSlowAlone(call)
      },
    })
    await model.ingest([...others, ...ids.flatMap(id => heavy(1, id))])
    await tested.foldWorker.fold()
    expect(await views()).toEqual(whole(others))
    expect((await tablesStatus(model)).fold).toMatchObject({
      pending_batches: 0,
      quarantine: ids.map(campaign_id => ({ campaign_id, failures: 1, reason: 'TIMEOUT_EXCEEDED' })),
    })
    for (; totalMs < 330_000; totalMs += 10_000) {
      await tested.foldWorker.fold()
      tested.advance(10_000)
    }
    expect(triedMs).toBeGreaterThanOrEqual(30_000)
    expect(triedMs).toBeLessThanOrEqual(totalMs / 10 + 5_000)
    expect([...tries.keys()].toSorted()).toEqual(ids)
    expect(Math.max(...tries.values()) - Math.min(...tries.values())).toBeLessThanOrEqual(1)
    expect(reports.at(-1)).toMatchObject({ event: 'not folded', all: 3 })
  })

  test('leaves at once when it is deleted or hidden, and is named nowhere then, although its pledges need more memory than a fold may use', async () => {
    const first = await leader({})
    const shown = [campaignEvent({ campaign_id: 'heavy' }), campaignEvent({ campaign_id: 'other' })]
    await model.ingest(shown)
    await first.foldWorker.fold()
    await writeManyPledges()
    let copies = 0
    const countCopies = ({ text }: TablesCall) => {
      if (text.includes('.campaign_days')) copies++
    }
    const tested = await leader({ before: countCopies }, { PLEDGEVIEW_FOLD_MEMORY_BYTES_MAX: memoryBytesMax })
    await model.ingest(heavy(2))
    await tested.foldWorker.fold()
    await tested.foldWorker.fold()
    expect(events()).toEqual(['quarantined', 'not folded'])
    expect(reports[0]).toMatchObject({ campaign: 'heavy', reason: 'MEMORY_LIMIT_EXCEEDED' })
    expect(await shownIds()).toEqual(['heavy', 'other'])
    expect([named, await inStatus()]).toEqual([['heavy'], ['heavy']])
    // Its next try is only after a pause, and the clock stands still.
    await model.ingest([campaignEvent({ campaign_id: 'heavy', version: 3, status: 'SUSPENDED' })])
    await tested.foldWorker.fold()
    expect(await shownIds()).toEqual(['other'])
    expect([named, await inStatus()]).toEqual([[], []])
    // From then on it causes no work.
    const copied = copies
    await tested.foldWorker.fold()
    expect([copied > 0, copies]).toEqual([true, copied])
    // Refunds of its pledges cost the others nothing.
    await model.ingest([
      pledgeEvent({ campaign_id: 'heavy', pledge_id: '1', version: 2, status: 'REFUNDED' }),
    ])
    await tested.foldWorker.fold()
    expect(events()).toEqual(['quarantined', 'not folded'])
    // It comes back, and is deleted for good.
    await model.ingest([campaignEvent({ campaign_id: 'heavy', version: 4 })])
    await tested.foldWorker.fold()
    expect([named, await inStatus()]).toEqual([['heavy'], ['heavy']])
    await (await leader({})).foldWorker.fold()
    expect(events().at(-1)).toBe('released')
    expect(await shownIds()).toEqual(['heavy', 'other'])
    // It is in no quarantine now, and no fold of this leader could compute its row.
    const last = await leader({}, { PLEDGEVIEW_FOLD_MEMORY_BYTES_MAX: memoryBytesMax })
    await model.ingest([campaignTombstone('heavy')])
    await last.foldWorker.fold()
    await last.foldWorker.fold()
    expect(await shownIds()).toEqual(['other'])
    expect([named, await inStatus()]).toEqual([[], []])
  })

  test('does not count any more once it is withdrawn, so a hundred of them keep no other out', async () => {
    await quarantineHundred('gone')
    await leaderThatMet({ before: tooSlowAlone })
    expect(await views()).toEqual(whole(others))
    expect([named, await inStatus()]).toEqual([['heavy'], ['heavy']])
  })

  test('leaves also when a hundred others are in quarantine, which keep one more that is public out', async () => {
    await model.ingest([...others, ...heavy(1)])
    await (await leader({})).foldWorker.fold()
    await quarantineHundred('heavy')
    await model.ingest([
      ...Array.from({ length: 100 }, (_, n) => campaignEvent({ campaign_id: `heavy${n}` })),
      campaignTombstone('heavy'),
    ])
    const { foldWorker } = await leader({ before: tooSlowAlone })
    await foldWorker.fold()
    expect(await views()).toEqual(whole(others))
    expect([named, await inStatus()]).toMatchObject([{ length: 100 }, { length: 100 }])
    await model.ingest(heavy(1, 'heavy too many'))
    await expect(foldWorker.fold()).rejects.toThrow('heavy too many cannot be folded either')
  })

  test('is shown, and marked when it is hidden, with stamps at or above a watermark that is ahead of the clock', async () => {
    const tested: TestFoldWorker = await leaderThatMet({
      before: tooSlow,
      after: call => (isAloneFold(call, 'heavy') ? tested.advance(foldMsMax) : undefined),
    })
    await model.tables.run({
      query: `INSERT INTO ${model.databases.read}.watermarks (shard, reached)
              SELECT '', now64(3, 'UTC') + INTERVAL 1 HOUR SETTINGS async_insert = 0`,
    })
    await tested.foldWorker.fold()
    await model.ingest([campaignEvent({ campaign_id: 'heavy', version: 2, status: 'SUSPENDED' })])
    await model.tables.run({ query: `SYSTEM STOP MERGES ${model.databases.read}.campaigns` })
    await tested.foldWorker.fold()
    const rows = await model.tables.rows<{ is_deleted: number; aheadS: number }>({
      query: `SELECT is_deleted, dateDiff('second', now64(3, 'UTC'), updated_at) AS aheadS
              FROM ${model.databases.read}.campaigns WHERE campaign_id = 'heavy' ORDER BY fold_id`,
    })
    expect(rows.map(row => row.is_deleted)).toEqual([0, 1])
    for (const { aheadS } of rows) expect(aheadS).toBeGreaterThan(3_000)
  })

  const denied = new TablesError('denied', { retryable: false, type: 'ACCESS_DENIED' })

  test.each<[string, string, (call: TablesCall, tested: TestFoldWorker) => Promise<void>]>([
    ['for what no fold can do', 'denied', () => Promise.reject(denied)],
    ['for a lost connection', 'the connection was lost', () => Promise.reject(lostConnection())],
    [
      'if ClickHouse is slow with every fold, also with one of nothing',
      'ClickHouse is slow',
      (call, tested) => {
        tested.advance(foldMsMax)
        return tooSlow(call)
      },
    ],
  ])('is not blamed %s', async (_, error, before) => {
    const tested: TestFoldWorker = await leader({
      async before(call) {
        if (isCampaignFold(call)) await before(call, tested)
      },
    })
    await model.ingest([...others, ...heavy(1)])
    await expect(tested.foldWorker.fold()).rejects.toThrow(error)
    expect(reports).toEqual([])
  })
})
