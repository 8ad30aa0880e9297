/** A rebuild beside live tables: what it leaves unchanged, what it changes, and what stops it. */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RebuildRefused } from '../../../services/rebuild/lease.ts'
import { abortRebuild, dropPrevious, rebuildStatus } from '../../../services/rebuild/rebuild-controller.ts'
import { RebuildInProgress } from '../../../services/rebuild/rebuild-log.ts'
import { countLive, hasShadow } from '../../../services/rebuild/shadow-tables.ts'
import { completeSwap } from '../../../services/rebuild/swap.ts'
import { VerificationFailed } from '../../../services/rebuild/verification.ts'
import { openJournalInspector } from '../../../services/shared/event-log/journal/inspector.ts'
import { sleep } from '../../../services/shared/sleep.ts'
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

const realTime = { monotonicMs: () => performance.now(), sleep }

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

/** Damages the live read tables, as a bug in a projector would. */
async function spoil(sql: string): Promise<void> {
  await live.tables.run({ query: sql.replaceAll('LIVE', live.databases.model) })
}

const spoiltTitle = `INSERT INTO LIVE.campaigns SELECT * REPLACE ('spoilt' AS title, toFixedString('x', 16) AS content_hash)
  FROM LIVE.campaigns FINAL WHERE campaign_id IN ('c1', 'c2')`
const lostCampaign = `INSERT INTO LIVE.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
  SELECT campaign_id, '', updated_at, fold_id, 1 FROM LIVE.campaigns FINAL WHERE campaign_id = 'c3'`
const inventedCampaign = `INSERT INTO LIVE.campaigns SELECT * REPLACE ('ghost' AS campaign_id) FROM
  (SELECT * FROM LIVE.campaigns FINAL WHERE campaign_id = 'c4')`

describe('a rebuild of correct tables', () => {
  test('changes no row and no stamp, and keeps the previous tables until they are dropped', async () => {
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

  test('loses nothing that arrives meanwhile, and stamps only what it changed', async () => {
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

describe('the rejects of a rebuild', () => {
  test('are not stored again: a dry run stores none, and a rebuild stores only those that are new, once', async () => {
    await live.append(platformHistory(5))
    const bad = Array.from({ length: 19 }, (_, n) => ({
      topic: 'pledges' as const,
      key: Buffer.from(`c1/bad${n}`),
      value: Buffer.from('no event'),
    }))
    await live.writer.append(bad)
    await live.settled()
    const known = rejects()
    expect(known).toHaveLength(19)
    await live.rebuild({ isDry: true })
    await live.rebuild()
    await live.rebuild({ kind: 'rollback' })
    expect(rejects()).toEqual(known)

    // To a rebuild this one is new, as if only a newer rule refused it.
    const journal = new DatabaseSync(live.journal)
    journal.exec('DELETE FROM rejects WHERE offset = (SELECT min(offset) FROM rejects)')
    journal.close()
    const rest = rejects()
    await dropPrevious(live)
    const dry = await live.rebuild({ isDry: true })
    expect(dry.detail.rejects).toBe(19)
    expect(rejects()).toEqual(rest)
    await live.rebuild()
    expect(rejects().slice(1)).toEqual(known.slice(1))
    expect(rejects()).toHaveLength(19)
  })

  /** The places and times of all rejects. */
  function rejects(): [offset: number, rejectedAt: number][] {
    const inspector = openJournalInspector(live.journal)
    const found = inspector.rejects({ limit: 100 })
    inspector.close()
    return found
      .map(({ record, rejectedAt }): [number, number] => [record.offset, rejectedAt])
      .toSorted(([a], [b]) => a - b)
  }
})

describe('a rebuild of wrong tables', () => {
  test.each([
    ['before', 10_000],
    ['after', 0],
  ])(
    'repairs it, and a poller fetches only the rows that differ: stamped %s the swap',
    async (_, stampedDuringPauseMax) => {
      const events = platformHistory(30)
      await live.append(events)
      await live.settled()
      for (const sql of [spoiltTitle, lostCampaign, inventedCampaign]) await spoil(sql)
      const before = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
      const [since] = await column(live.tables, "SELECT toString(now64(3, 'UTC')) AS value")
      const { detail } = await live.rebuild({ stampedDuringPauseMax })
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
      // A poller that follows departures sees the campaign that is gone.
      const departed = `SELECT DISTINCT campaign_id AS value FROM ${live.databases.model}.campaign_changes
      WHERE updated_at >= '${since}' ORDER BY value`
      expect(await column(live.tables, departed)).toEqual(['c1', 'c2', 'c3', 'ghost'])
    },
  )

  test('has a dry run that reports what would change, field by field, and leaves nothing behind', async () => {
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

  test('can be rolled back: the previous tables are live again, with everything that arrived meanwhile', async () => {
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
    await live.rebuild({ kind: 'rollback' })
    await live.settled()
    const ids = (await stampsOf(live)).map(({ id }) => id)
    expect(ids).toContain('ghost')
    const { campaigns } = readModelOf([...events, ...more])
    expect(ids.filter(id => id !== 'ghost')).toEqual([...campaigns.keys()].toSorted())
    // And a second rollback returns to the rebuilt tables.
    await live.rebuild({ kind: 'rollback' })
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(
      expectedReading(readModelOf([...events, ...more])),
    )
  })
})

describe('what must not be swapped in', () => {
  test('a history without everything that is live stops it and is named; with the loss accepted it continues', async () => {
    await live.append(platformHistory(10))
    await live.settled()
    const before = await readViews(live.tables, live.databases)
    await delay(5)
    const fromTime = Date.now()
    await live.append([campaignEvent({ campaign_id: 'late', version: 3 })])
    await live.settled()
    const failure = await live.rebuild({ fromTime }).catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c1 is in the live tables, but not in')
    expect((await readViews(live.tables, live.databases)).campaigns.length).toBe(before.campaigns.length + 1)
    await live.rebuild({ fromTime, acceptsLoss: true })
    expect((await stampsOf(live)).map(({ id }) => id)).toEqual(['late'])
  })

  test('read tables that do not match their ledger stop it, and the campaign is named', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const shadow = `${live.databases.model}_shadow`
    const failure = await live
      .rebuild({
        async onPhase(phase) {
          // As if a fold had counted wrongly.
          if (phase !== 'verifying') return
          await live.tables.run({
            query: `INSERT INTO ${shadow}.campaigns SELECT * REPLACE (pledge_count + 1 AS pledge_count, fold_id + 1 AS fold_id)
              FROM ${shadow}.campaigns FINAL WHERE campaign_id = 'c4'`,
          })
        },
      })
      .catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c4 shows pledges 5, but its ledger says 4')
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'verifying', isPreviousKept: false })
  })
})

describe('the swap', () => {
  const isExchange = ({ text }: TablesCall) => text.startsWith('EXCHANGE TABLES')

  test('never shows less than before: what arrived before the fold pause is in the new tables', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const late = pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })
    const pledges = `SELECT pledge_count AS value FROM ${live.databases.views}.campaigns WHERE campaign_id = 'c1'`
    const before = Number((await column(live.tables, pledges))[0])
    let isSaid = false
    const shown: unknown[] = []
    await live.rebuild({
      tables: obstructed(live.tables, {
        // The last moment at which it can be shown before the swap.
        async before({ text, query_params }) {
          if (
            isSaid ||
            !text.includes('fold_epochs (') ||
            !String(query_params.holder).startsWith('rebuild/')
          )
            return
          isSaid = true
          await live.append([late])
          await live.settled()
          shown.push(...(await column(live.tables, pledges)))
        },
        async after({ text }) {
          if (text.startsWith('EXCHANGE TABLES')) shown.push(...(await column(live.tables, pledges)))
        },
      }),
    })
    expect(shown).toEqual([before + 1, before + 1])
  })

  test('of a process that stood still until others fold again swaps nothing, and is tried again', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const pledges = `SELECT pledge_count AS value FROM ${live.databases.views}.campaigns WHERE campaign_id = 'c1'`
    const before = Number((await column(live.tables, pledges))[0])
    const shown: unknown[] = []
    let exchanges = 0
    await live.rebuild({
      tables: obstructed(live.tables, {
        async before({ text }) {
          if (!text.startsWith('EXCHANGE TABLES')) return
          exchanges++
          if (exchanges > 1) return
          // As if the process had stood still for longer than the pause lasts.
          await live.tables.run({
            query: `ALTER TABLE ${live.databases.model}.fold_epochs UPDATE taken_at = taken_at - INTERVAL 1 MINUTE WHERE true
              SETTINGS mutations_sync = 1`,
          })
          await live.append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
          await live.settled()
          shown.push(...(await column(live.tables, pledges)))
        },
        async after({ text }) {
          if (text.startsWith('EXCHANGE TABLES')) shown.push(...(await column(live.tables, pledges)))
        },
      }),
    })
    expect(shown).toEqual([before + 1, before + 1])
    expect(exchanges).toBe(2)
    const permits = `SELECT name AS value FROM system.tables WHERE database = '${live.databases.model}' AND name LIKE 'swap%'`
    expect(await column(live.tables, permits)).toEqual([])
  })

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

  test('is completed by the next fold worker if ClickHouse died in it, and the rebuild continues', async () => {
    const events = platformHistory(12)
    await live.append(events)
    await live.settled()
    await spoil(inventedCampaign)
    const dying: Tables = {
      ...live.tables,
      async run(statement, options) {
        if (!statement.query.startsWith('EXCHANGE TABLES')) return live.tables.run(statement, options)
        // The permit of the swap, and the first table.
        await live.tables.run({ query: statement.query.split(',', 2).join(',') })
        throw new Error('killed')
      },
    }
    await expect(live.rebuild({ tables: dying })).rejects.toThrow('killed')
    const state = await rebuildStatus(live)
    const rebuilt = state?.detail.tableIds ?? {}
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(1)
    await completeSwap(live.tables, live.databases, realTime)
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(5)
    await completeSwap(live.tables, live.databases, realTime)
    expect(await countLive(live.tables, live.databases, rebuilt)).toBe(5)
    await live.rebuild()
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  })

  test('of tables from before an upgrade migrates them first', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    await live.rebuild()
    const { model } = live.databases
    // As if the previous tables had been made before the last migration of the read tables.
    await live.tables.run({ query: `DROP VIEW ${model}_shadow.campaign_changes` })
    await live.tables.run({
      query: `ALTER TABLE ${model}_shadow.migrations DELETE WHERE number = 5 SETTINGS mutations_sync = 1`,
    })
    await live.rebuild({ kind: 'rollback' })
    const views = `SELECT count() AS value FROM system.tables WHERE database = '${model}_shadow' AND name = 'campaign_changes'`
    expect(await column(live.tables, views)).toEqual([1])
  })
})

describe('the rebuild controller', () => {
  test('refuses a second rebuild, and leaves nothing of one that was given up', async () => {
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
