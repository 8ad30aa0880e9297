/** What a promotion does while it holds the fold: each of its steps is needed. kills.test.ts kills it at some of them. */
import { expect, test } from 'vitest'
import { rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { VerificationFailed } from '../../../services/generations/verification.ts'
import { openJournalReader } from '../../../services/log/local/journal.ts'
import { generationOf } from '../../../services/tables/generation-log.ts'
import { isCampaignFold, obstructed, timeoutExceeded } from '../../support/clickhouse/faulty-tables.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
} from '../../support/events/sample-events.ts'
import { damage, inventedCampaign, lostCampaign, spoiltTitle } from '../../support/generations/damage.ts'
import { isStamps, type RebuildableModel, stampsOf } from '../../support/generations/rebuilds.ts'
import { useRebuildable } from '../../support/generations/use-rebuildable.ts'
import { clockOf, column } from '../../support/projector/fold-records.ts'
import { positionsIn } from '../../support/projector/positions.ts'
import { createStampClock } from '../../support/projector/stamp-clock.ts'

const hourMs = 3_600_000
let live: RebuildableModel
useRebuildable(20, opened => {
  live = opened
})

test('a generation has from its first answer on what was shown until the fold was held, with its stamps, and the keys that were not folded any more', async () => {
  const { generation: from, ledger } = live.databases
  const api_key = 'pv_live_0123456789abcdefghijklmnop'
  const shown = () =>
    column(
      live.tables,
      `SELECT concat(campaign_id, ' ', toString(pledge_count), ' ', toString(updated_at)) AS value
      FROM ${live.databases.read}.campaigns FINAL ORDER BY campaign_id`,
    )
  const first = await shown()
  let last: unknown[] = []
  let isHeld = false
  const tables = obstructed(live.tables, {
    async after({ kind, text }) {
      if (isHeld || kind !== 'run' || !text.includes(`INSERT INTO ${ledger}.fold_epochs`)) return
      isHeld = true
      await live.append([apiKeyEvent({ key: api_key, account_id: 'reader' })])
      await live.committed()
      // From here on, nothing but the promotion reads the log, or folds.
      await live.stopProjector()
    },
  })
  await live.rebuild({
    tables,
    async onPhase(phase) {
      if (phase !== 'promoting') return
      await live.append([
        pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' }),
        campaignEvent({ campaign_id: 'new', version: 1, status: 'LIVE' }),
      ])
      await live.settled()
      last = await shown()
    },
  })
  expect(isHeld).toBe(true)
  await live.databases.follow(live.tables)
  expect(live.databases.generation).toBe(from + 1)
  expect(last).not.toEqual(first)
  expect(await shown()).toEqual(last)
  const active = `SELECT api_key AS value FROM ${live.databases.base}.api_keys FINAL WHERE is_active`
  expect(await column(live.tables, active)).toContain(api_key)
})

test.each([
  ['when the fold is to be held', () => false],
  ['when the rows are to be stamped', isStamps],
])(
  'a clock that leaps ahead %s stops it: nothing gets a stamp that cannot be taken back',
  async (_, isMoment) => {
    const from = live.databases.generation
    const clock = createStampClock()
    const leap = () => clock.moveForward(2 * hourMs)
    const tables = obstructed(clock.on(live.tables), {
      before({ text }) {
        if (isMoment(text)) leap()
      },
    })
    const failure = await live
      .rebuild({
        tables,
        async onPhase(phase) {
          if (phase === 'promoting' && isMoment !== isStamps) leap()
        },
      })
      .catch(error => error)
    expect(failure.message).toContain('nothing is folded')
    await live.databases.follow(live.tables)
    expect(live.databases.generation).toBe(from)
    const next = generationOf(live.databases, from + 1)
    const ahead = await column(
      live.tables,
      `SELECT stamp AS value FROM
       (SELECT reached AS stamp FROM ${live.databases.read}.watermarks UNION ALL SELECT updated_at FROM ${next.read}.campaigns)
     WHERE stamp > now64(3, 'UTC') + toIntervalHour(1)`,
    )
    expect(ahead).toEqual([])
  },
)

test('a campaign that cannot be folded ends the rebuild, which names it and says why', async () => {
  const next = generationOf(live.databases, live.databases.generation + 1)
  const tables = obstructed(live.tables, {
    before(call) {
      // A fold of no campaign shows that the server is not slow.
      const isOfNone = call.query_params.campaign === ''
      if (isCampaignFold(call) && call.text.includes(next.read) && !isOfNone) throw timeoutExceeded()
    },
  })
  await expect(live.rebuild({ tables })).rejects.toThrow(/^campaign c\d cannot be folded: .*TIMEOUT_EXCEEDED/)
})

test('a withdrawal ends no rebuild, although no fold can read its pledges, and what the new tables showed of it leaves them', async () => {
  const next = generationOf(live.databases, live.databases.generation + 1)
  const refused = new Set<unknown>()
  const tables = obstructed(live.tables, {
    before(call) {
      if (!isCampaignFold(call) || !call.text.includes(next.read) || call.query_params.campaign === '') return
      // In the first fold it has c0, which is not public, and in the last one c1.
      if (call.query_params.piece !== 0) return
      refused.add(call.query_params.pieces)
      throw timeoutExceeded()
    },
  })
  await live.rebuild({
    tables,
    async onPhase(phase) {
      if (phase !== 'promoting') return
      await live.append([campaignTombstone('c1')])
      await live.settled()
    },
  })
  expect(refused.size).toBeGreaterThan(1)
  await live.databases.follow(live.tables)
  expect(live.databases.read).toBe(next.read)
  const shown = (await stampsOf(live)).map(({ id }) => id)
  expect(shown).toHaveLength(16)
  expect(shown).not.toContain('c1')
  const removed = `SELECT campaign_id AS value FROM ${next.read}.removals WHERE campaign_id != ''`
  expect(await column(live.tables, removed)).toEqual(['c1'])
})

test.each([
  ['before its promotion', 'verifying'],
  ['once more, with what was folded last', 'promoting'],
] as const)('a rebuild is verified %s, and nothing is promoted if it is wrong', async (_, moment) => {
  const from = live.databases.generation
  const next = generationOf(live.databases, from + 1)
  // As if a fold had counted wrongly.
  const miscount = () =>
    live.tables.run({
      query: `INSERT INTO ${next.read}.campaigns SELECT * REPLACE (pledge_count + 1 AS pledge_count, fold_id + 1 AS fold_id)
        FROM ${next.read}.campaigns FINAL WHERE campaign_id = 'c4'`,
    })
  let isPromoting = false
  const tables = obstructed(live.tables, {
    async after(call) {
      if (isPromoting && isCampaignFold(call) && call.text.includes(next.read)) await miscount()
    },
  })
  const failure = await live
    .rebuild({
      tables,
      async onPhase(phase) {
        if (phase !== moment) return
        if (phase === 'verifying') return miscount()
        await live.append([pledgeEvent({ campaign_id: 'c4', pledge_id: 'late' })])
        isPromoting = true
      },
    })
    .catch(error => error)
  expect(failure).toBeInstanceOf(VerificationFailed)
  expect(failure.message).toMatch(/campaign c4 shows pledges \d, but its ledger says \d/)
  expect(await rebuildStatus(live)).toMatchObject({ phase: moment, isPreviousKept: false })
  await live.databases.follow(live.tables)
  expect(live.databases.generation).toBe(from)
})

/** As a leader wrote it before the clock stepped back. */
const reachInTables = (at: number) =>
  damage(
    live,
    `INSERT INTO LIVE.watermarks (shard, reached) SELECT '', fromUnixTimestamp64Milli(${at}, 'UTC') SETTINGS async_insert = 0`,
  )

/** As a leader remembered it before the tables were restored. */
async function reachInLog(at: number): Promise<void> {
  const starts = positionsIn(live)
  const reader = await openJournalReader(live.journal, { consumer: 'projector', starts })
  await reader.rememberWatermark(at, at)
  await reader.close()
}

test.each([
  ['the tables have', reachInTables],
  ['only the log has, after a restore', reachInLog],
])(
  'a clock that stands behind the watermark, which %s, gives no stamp that a poller has passed',
  async (_, reach) => {
    const { tables, databases } = live
    await live.stopProjector()
    const reached = (await clockOf(tables)) + hourMs
    await reach(reached)
    for (const sql of [spoiltTitle, lostCampaign, inventedCampaign]) await damage(live, sql)
    const later = `fromUnixTimestamp64Milli(${reached + 60_000}, 'UTC')`
    await damage(
      live,
      `INSERT INTO LIVE.campaigns SELECT * REPLACE (${later} AS updated_at, fold_id + 1 AS fold_id)
        FROM LIVE.campaigns FINAL WHERE campaign_id = 'ghost'`,
    )
    await live.rebuild()
    await databases.follow(tables)
    const since = `SELECT DISTINCT campaign_id AS value FROM ${databases.read}.campaign_changes WHERE updated_at`
    expect(await column(tables, `${since} >= fromUnixTimestamp64Milli(${reached}, 'UTC')`)).toEqual(
      expect.arrayContaining(['c1', 'c2', 'c3', 'ghost']),
    )
    expect(await column(tables, `${since} > ${later}`)).toEqual(['ghost'])
  },
)
