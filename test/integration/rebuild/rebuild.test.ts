/** A rebuild beside a live model: what it leaves as it was, what it changes, and what stops it. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RebuildRefused } from '../../../services/rebuild/claim.ts'
import { abortRebuild, dropPrevious, rebuildStatus } from '../../../services/rebuild/control.ts'
import { completeExchange } from '../../../services/rebuild/exchange.ts'
import { countLive, hasShadow } from '../../../services/rebuild/generation.ts'
import { RebuildInProgress } from '../../../services/rebuild/rebuild-log.ts'
import { VerificationFailed } from '../../../services/rebuild/verification.ts'
import type { Tables } from '../../../services/shared/tables/port.ts'
import { lostConnection, obstructed, type TablesCall } from '../../support/faulty-tables.ts'
import { column } from '../../support/fold-records.ts'
import { readModelOf } from '../../support/model.ts'
import { expectedReading, type ModelTables, openModelTables, readViews } from '../../support/model-tables.ts'
import {
  openRebuildableModel,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../support/rebuilds.ts'
import { campaignEvent, pledgeEvent } from '../../support/sample-events.ts'

let model: ModelTables
let live: RebuildableModel

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())
beforeEach(async () => {
  live = await openRebuildableModel(model)
})
afterEach(() => live.close())

/** Does to the live read tables what a bug of a projector would have done. */
async function spoil(sql: string): Promise<void> {
  await live.tables.run({ query: sql.replaceAll('LIVE', live.databases.model) })
}

const spoiltTitle = `INSERT INTO LIVE.campaigns SELECT * REPLACE ('spoilt' AS title, toFixedString('x', 16) AS content_hash)
  FROM LIVE.campaigns FINAL WHERE campaign_id IN ('c1', 'c2')`
const lostCampaign = `INSERT INTO LIVE.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
  SELECT campaign_id, '', updated_at, fold_id, 1 FROM LIVE.campaigns FINAL WHERE campaign_id = 'c3'`
const inventedCampaign = `INSERT INTO LIVE.campaigns SELECT * REPLACE ('ghost' AS campaign_id) FROM
  (SELECT * FROM LIVE.campaigns FINAL WHERE campaign_id = 'c4')`

describe('a rebuild of a model that is as it should be', () => {
  test('changes no row and no stamp, and keeps the generation before until it is dropped', async () => {
    const events = platformHistory(60)
    await live.append(events)
    await live.settled()
    const before = await stampsOf(live)
    const { detail } = await live.rebuild()
    expect(detail.differences).toMatchObject({ same: before.length, added: 0, removed: 0, different: 0 })
    expect(detail.records).toBe(events.length)
    await live.settled()
    expect(await stampsOf(live)).toEqual(before)
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'rebuilt', isPreviousKept: true })
    await expect(live.rebuild()).rejects.toBeInstanceOf(RebuildRefused)
    await dropPrevious(live)
    expect(await hasShadow(live.tables, live.databases)).toBe(false)
    await live.rebuild()
    expect(await stampsOf(live)).toEqual(before)
  })

  test('loses nothing that comes meanwhile, and stamps only what it changed', async () => {
    const events = platformHistory(40)
    await live.append(events)
    await live.settled()
    const stamps = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
    const more = Array.from({ length: 60 }, (_, n) =>
      pledgeEvent({ campaign_id: `c${1 + (n % 3)}`, pledge_id: `more${n}` }),
    )
    const traffic = (async () => {
      for (const event of more) {
        await live.append([event])
        await delay(25)
      }
    })()
    await live.rebuild()
    await traffic
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(
      expectedReading(readModelOf([...events, ...more])),
    )
    const changed = (await stampsOf(live)).filter(({ id, at }) => stamps.get(id) !== at)
    expect(changed.map(({ id }) => id)).toEqual(['c1', 'c2', 'c3'])
  })
})

describe('a rebuild of a model that is wrong', () => {
  test.each([
    ['before', 10_000],
    ['after', 0],
  ])(
    'mends it, and a poller fetches the rows that differ and no others: stamped %s the exchange',
    async (_, stampedUnderHoldMax) => {
      const events = platformHistory(30)
      await live.append(events)
      await live.settled()
      for (const sql of [spoiltTitle, lostCampaign, inventedCampaign]) await spoil(sql)
      const before = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
      const [since] = await column(live.tables, "SELECT toString(now64(3, 'UTC')) AS value")
      const { detail } = await live.rebuild({ stampedUnderHoldMax })
      expect(detail.differences).toMatchObject({
        added: 1,
        removed: 1,
        different: 2,
        inMotion: 0,
        fields: { title: 2 },
      })
      expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
      const after = await stampsOf(live)
      const fetched = after.filter(({ at }) => at >= String(since)).map(({ id }) => id)
      expect(fetched).toEqual(['c1', 'c2', 'c3'])
      const others = after.filter(({ id }) => !fetched.includes(id))
      expect(others.map(({ id, at }) => [id, at])).toEqual(others.map(({ id }) => [id, before.get(id)]))
      // Whoever follows departures learns of the one that is gone.
      const departed = `SELECT DISTINCT campaign_id AS value FROM ${live.databases.model}.campaign_changes
      WHERE updated_at >= '${since}' ORDER BY value`
      expect(await column(live.tables, departed)).toEqual(['c1', 'c2', 'c3', 'ghost'])
    },
  )

  test('can be tried dry: it tells what would change, field by field, and leaves nothing behind', async () => {
    await live.append(platformHistory(30))
    await live.settled()
    await spoil(spoiltTitle)
    await spoil(inventedCampaign)
    const before = await readViews(live.tables, live.databases)
    const { detail } = await live.rebuild({ isDry: true })
    expect(detail.differences).toMatchObject({ added: 0, removed: 1, different: 2, inMotion: 0 })
    expect(detail.differences?.examples).toContainEqual({
      campaign_id: 'c1',
      change: 'different',
      fields: [{ field: 'title', live: 'spoilt', rebuilt: 'Title of c1' }],
    })
    expect(await readViews(live.tables, live.databases)).toEqual(before)
    expect(await hasShadow(live.tables, live.databases)).toBe(false)
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'compared', isPreviousKept: false })
  })

  test('can be taken back: the generation before is live again, with all that came meanwhile', async () => {
    const events = platformHistory(30)
    await live.append(events)
    await live.settled()
    await spoil(inventedCampaign)
    await live.rebuild()
    const more = [
      campaignEvent({ campaign_id: 'new', version: 1 }),
      pledgeEvent({ campaign_id: 'c1', pledge_id: 'n' }),
    ]
    await live.append(more)
    await live.settled()
    await live.rebuild({ kind: 'back' })
    await live.settled()
    const ids = (await stampsOf(live)).map(({ id }) => id)
    expect(ids).toContain('ghost')
    const { campaigns } = readModelOf([...events, ...more])
    expect(ids.filter(id => id !== 'ghost')).toEqual([...campaigns.keys()].toSorted())
    // And forth again.
    await live.rebuild({ kind: 'back' })
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(
      expectedReading(readModelOf([...events, ...more])),
    )
  })
})

describe('what must not be exchanged', () => {
  test('a history that does not tell of all that is live stops it, and is named; it goes on when that is accepted', async () => {
    await live.append(platformHistory(10))
    await live.settled()
    const before = await readViews(live.tables, live.databases)
    await delay(5)
    const fromTime = Date.now()
    await live.append([campaignEvent({ campaign_id: 'late', version: 3 })])
    await live.settled()
    const failure = await live.rebuild({ fromTime }).catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c1 is known to the live model')
    expect((await readViews(live.tables, live.databases)).campaigns.length).toBe(before.campaigns.length + 1)
    await live.rebuild({ fromTime, acceptsLoss: true })
    expect((await stampsOf(live)).map(({ id }) => id)).toEqual(['late'])
  })

  test('read tables that do not say what their ledger says stop it, and the campaign is named', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const shadow = `${live.databases.model}_shadow`
    const failure = await live
      .rebuild({
        async onPhase(phase) {
          // As a fold that counts wrongly would leave it.
          if (phase !== 'verifying') return
          await live.tables.run({
            query: `INSERT INTO ${shadow}.campaigns SELECT * REPLACE (pledge_count + 1 AS pledge_count, fold_id + 1 AS fold_id)
              FROM ${shadow}.campaigns FINAL WHERE campaign_id = 'c4'`,
          })
        },
      })
      .catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c4 shows pledges 5, and its ledger says 4')
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'verifying', isPreviousKept: false })
  })
})

describe('the exchange', () => {
  const isExchange = ({ text }: TablesCall) => text.startsWith('EXCHANGE TABLES')

  test.each(['before', 'after'] as const)('happens once when its answer is lost %s it', async when => {
    const events = platformHistory(12)
    await live.append(events)
    await live.settled()
    await spoil(inventedCampaign)
    let lost = 0
    const losing = (call: TablesCall) => {
      if (!isExchange(call) || lost > 0) return
      lost++
      throw lostConnection()
    }
    await live.rebuild({ tables: obstructed(live.tables, { [when]: losing }) })
    expect(lost).toBe(1)
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  })

  test('that ClickHouse did not survive is made whole by who folds next, and the rebuild goes on', async () => {
    const events = platformHistory(12)
    await live.append(events)
    await live.settled()
    await spoil(inventedCampaign)
    const dying: Tables = {
      ...live.tables,
      async run(statement, options) {
        if (!statement.query.startsWith('EXCHANGE TABLES')) return live.tables.run(statement, options)
        const [first = ''] = statement.query.split(',')
        await live.tables.run({ query: first })
        throw new Error('killed')
      },
    }
    await expect(live.rebuild({ tables: dying })).rejects.toThrow('killed')
    const state = await rebuildStatus(live)
    const rebuilt = state?.detail.tableIds ?? {}
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(1)
    await completeExchange(live.tables, live.databases)
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(5)
    await completeExchange(live.tables, live.databases)
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(5)
    await live.rebuild()
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  })

  test('of a generation that was made before an upgrade brings tables of the present form', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    await live.rebuild()
    const { model } = live.databases
    // As if the generation before had been made before the last migration of the read tables.
    await live.tables.run({ query: `DROP VIEW ${model}_shadow.campaign_changes` })
    await live.tables.run({
      query: `ALTER TABLE ${model}_shadow.migrations DELETE WHERE number = 5 SETTINGS mutations_sync = 1`,
    })
    await live.rebuild({ kind: 'back' })
    const views = `SELECT count() AS value FROM system.tables WHERE database = '${model}_shadow' AND name = 'campaign_changes'`
    expect(await column(live.tables, views)).toEqual([1])
  })
})

describe('control', () => {
  test('two at once are refused, and one that is given up leaves nothing', async () => {
    await live.append(platformHistory(10))
    await live.settled()
    const reached = Promise.withResolvers<void>()
    const refused = Promise.withResolvers<void>()
    const slow = obstructed(live.tables, {
      async before({ text }) {
        if (!text.includes('shown_pledges')) return
        reached.resolve()
        await refused.promise
      },
    })
    const first = live.rebuild({ isAlone: false, tables: slow })
    first.catch(() => {})
    await reached.promise
    await expect(live.rebuild({ isAlone: false })).rejects.toBeInstanceOf(RebuildInProgress)
    setTimeout(() => refused.resolve(), 3_000)
    await abortRebuild(live.control)
    await expect(first).rejects.toThrow('given up')
    expect(await hasShadow(live.tables, live.databases)).toBe(false)
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'aborted' })
  }, 30_000)
})
