import { describe, expect, test } from 'vitest'
import { rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { VerificationFailed } from '../../../services/generations/verification.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { readPositions } from '../../../services/projector/positions/positions.ts'
import { createSqlListSource } from '../../../services/query/lists/campaign-lists.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { generationOf } from '../../../services/tables/generation-log.ts'
import { obstructed, type TablesCall } from '../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../support/events/model.ts'
import { campaignEvent } from '../../support/events/sample-events.ts'
import { damage, inventedCampaign, lostCampaign, spoiltTitle } from '../../support/generations/damage.ts'
import {
  emptyLog,
  generationsOf,
  isStamps,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../support/generations/rebuilds.ts'
import { useRebuildable } from '../../support/generations/use-rebuildable.ts'
import { column } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { backUpTables, positionsIn, watermarkIn } from '../../support/projector/positions.ts'
import { keptRejects } from '../../support/projector/reject-filters.ts'

const campaigns = 30
const events = platformHistory(campaigns)
let live: RebuildableModel
useRebuildable(campaigns, opened => {
  live = opened
})

describe('the rejects of a rebuild', () => {
  test('are not stored again: a dry run and a rollback store none, and a rebuild only what is new, once, and nothing whose time is over', async () => {
    const { PLEDGEVIEW_REJECT_RETENTION_MS: keptMs } = readConfig({})
    const now = Date.now()
    const bad: NewRecord = { topic: 'pledges', key: Buffer.from('c1/bad'), value: Buffer.from('no event') }
    for (const age of [keptMs + 60_000, keptMs - 3_600_000]) {
      const writer = await openJournalWriter(live.journal, { now: () => now - age })
      await writer.append([bad])
      await writer.close()
    }
    await live.writer.append(Array.from({ length: 17 }, () => bad))
    await live.settled()
    const [old, young, ...rest] = await rejects()
    expect(rest).toHaveLength(17)
    // As the TTL deletes the first. To a rebuild the second is new, as if only a newer rule refused it.
    await live.tables.run({
      query: `ALTER TABLE ${live.databases.base}.rejects DELETE WHERE offset IN (${old?.[0]}, ${young?.[0]}) SETTINGS mutations_sync = 2`,
    })
    const dry = await live.rebuild({ isDry: true })
    expect(dry.detail.rejects).toBe(19)
    expect(await rejects()).toEqual(rest)
    await live.rebuild()
    const all = await rejects()
    expect(all.map(([offset]) => offset)).toEqual([young, ...rest].map(one => one?.[0]))
    expect(all.slice(1)).toEqual(rest)
    await live.rebuild({ kind: 'rollback' })
    expect(await rejects()).toEqual(all)
  })

  /** The places and times of all rejects. */
  async function rejects(): Promise<[offset: number, rejectedAt: number][]> {
    const found = await keptRejects(live.tables, live.databases)
    return found.map(({ record, rejectedAt }) => [record.offset, rejectedAt])
  }
})

describe('a rebuild of wrong tables', () => {
  test('tells in a dry run what would change, which leaves nothing behind; then repairs it, and a poller fetches only the rows that differ', async () => {
    for (const sql of [spoiltTitle, lostCampaign, inventedCampaign]) await damage(live, sql)
    const before = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
    const wrong = await readViews(live.tables, live.databases)
    const differences = { added: 1, removed: 1, different: 2, inMotion: 0, fields: { title: 2 } }
    const dry = await live.rebuild({ isDry: true })
    expect(dry.detail.differences).toMatchObject(differences)
    expect(dry.detail.differences?.examples).toContainEqual({
      campaign_id: 'c1',
      change: 'different',
      fields: [{ field: 'title', live: 'spoilt', rebuilt: 'Title of c1' }],
    })
    expect(await readViews(live.tables, live.databases)).toEqual(wrong)
    expect(await generationsOf(live)).toHaveLength(1)
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'compared', isPreviousKept: false })

    const [since] = await column(live.tables, "SELECT toString(now64(3, 'UTC')) AS value")
    const [lost] = await column(
      live.tables,
      `SELECT toString(max(updated_at)) AS value FROM ${live.databases.read}.campaigns WHERE campaign_id = 'c3'`,
    )
    const { detail } = await live.rebuild()
    await live.settled()
    expect(detail.differences).toMatchObject(differences)
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
    const after = await stampsOf(live)
    const fetched = after.filter(({ at }) => at >= String(since)).map(({ id }) => id)
    expect(fetched).toEqual(['c1', 'c2', 'c3'])
    // Later than its removal, although the clock stands behind that.
    expect(String(after.find(({ id }) => id === 'c3')?.at) > String(lost)).toBe(true)
    const others = after.filter(({ id }) => !fetched.includes(id))
    expect(others.map(({ id, at }) => [id, at])).toEqual(others.map(({ id }) => [id, before.get(id)]))
    // A poller that follows departures sees the campaign that is gone.
    const departed = `SELECT DISTINCT campaign_id AS value FROM ${live.databases.read}.campaign_changes
      WHERE updated_at >= '${since}' ORDER BY value`
    expect(await column(live.tables, departed)).toEqual(['c1', 'c2', 'c3', 'ghost'])
  })

  test('can be rolled back to tables that had a campaign in quarantine: it keeps its stamp; and they are then read as far in time as those that they replace', async () => {
    await live.append(platformHistory(5))
    await live.settled()
    const { ledger, read } = generationOf(live.databases, live.databases.generation)
    await live.rebuild()
    await live.settled()
    await live.stopProjector()
    const stamps = await stampsOf(live)
    const readUntil = async () => (await readPositions([live], '')).ofLog.get('campaigns/0')?.readUntil
    const before = await readUntil()
    expect(before).toBeGreaterThan(0)
    for (const query of [
      `INSERT INTO ${ledger}.quarantine (campaign_id, fold_id, is_quarantined, failures, reason, since)
       SELECT 'c1', 1, true, 1, 'TIMEOUT_EXCEEDED', now64(3, 'UTC')`,
      `DELETE FROM ${read}.campaigns WHERE campaign_id = 'c1' SETTINGS lightweight_deletes_sync = 2`,
      `ALTER TABLE ${ledger}.positions UPDATE read_until = read_until - INTERVAL 2 DAY WHERE 1 SETTINGS mutations_sync = 2`,
    ])
      await live.tables.run({ query })
    await live.rebuild({ kind: 'rollback' })
    await live.databases.follow(live.tables)
    expect(await readUntil()).toEqual(before)
    await live.startProjector()
    await live.settled()
    expect(await stampsOf(live)).toEqual(stamps)
  })

  // A watermark of months ago has everything folded in any case: test/integration/projector/service.test.ts.
  test('can be rolled back when its batches have expired: what was hidden while the previous tables were given up stays hidden', async () => {
    const previous = generationOf(live.databases, live.databases.generation)
    let isHidden = false
    const tables = obstructed(live.tables, {
      async before({ text }) {
        if (isHidden || !isStamps(text)) return
        isHidden = true
        // The projectors still write it into the previous tables, which nothing folds any more.
        await live.append([campaignEvent({ campaign_id: 'c1', version: 3, status: 'SUSPENDED' })])
        await live.committed()
      },
    })
    await live.rebuild({ tables })
    await live.settled()
    const before = await stampsOf(live)
    expect(before.map(({ id }) => id)).not.toContain('c1')
    await live.tables.run({
      query: `ALTER TABLE ${previous.ledger}.batch_log DELETE WHERE 1 SETTINGS mutations_sync = 2`,
    })
    await live.rebuild({ kind: 'rollback' })
    await live.settled()
    expect(live.databases.ledger).toBe(previous.ledger)
    expect(await stampsOf(live)).toEqual(before)
  })
})

describe('a rebuild of tables that were restored from a backup', () => {
  /**
   * As after a kill of the process that holds the fold, whose hold has moved the watermark on; and then as a projector does that cannot
   * read the log.
   */
  async function rebuildAndStartInVain(): Promise<void> {
    const before = ({ text }: TablesCall) => {
      if (isStamps(text)) throw new Error('killed')
    }
    await expect(live.rebuild({ tables: obstructed(live.tables, { before }) })).rejects.toThrow('killed')
    const starts = positionsIn(live)
    await (await openJournalReader(live.journal, { consumer: 'projector', starts })).close()
  }

  const rebuild = () => live.rebuild()
  // And without any of these: of one shard, in shards/rebuild.test.ts.
  test.each<{
    what: string
    begin?: () => Promise<unknown>
    prepare?: () => Promise<void>
    kind?: 'rebuild' | 'rollback'
  }>([
    {
      what: 'if it was killed while it held the fold, and a projector has read nothing again',
      prepare: rebuildAndStartInVain,
    },
    { what: 'if it is a rollback', begin: rebuild, kind: 'rollback' },
  ])('tells a poller what the backup lacks, also $what', async ({ begin, prepare, kind = 'rebuild' }) => {
    await begin?.()
    const { tables, databases } = live
    const campaign = (campaign_id: string, version: number, title = 'A') =>
      campaignEvent({ campaign_id, version, title })
    await live.append([campaign('a', 1), campaign('b', 1)])
    await live.settled()
    const restore = await backUpTables(tables, [databases.base, databases.ledger, databases.read])
    await live.append([campaign('a', 2, 'B'), campaign('unknown', 1)])
    await live.settled()
    const copied = await watermarkIn(live)
    // A leader remembers as shown the watermark before the last one.
    await expect.poll(async () => (await live.remembered()).shown).toBeGreaterThan(copied)
    const since = await watermarkIn(live)
    await live.append([campaign('a', 3), { type: 'campaign', key: 'unknown', data: null }])
    await live.settled()
    await live.stopProjector()
    await restore()
    await prepare?.()
    await live.rebuild({ kind })
    await live.startProjector()
    await live.settled()
    const changed = `SELECT campaign_id AS value FROM ${live.databases.views}.campaigns
      WHERE updated_at >= fromUnixTimestamp64Milli(${since}, 'UTC')`
    expect(await column(tables, changed)).toContain('a')
    const source = createSqlListSource(tables, live.databases, { keptMs: 86_400_000, msMax: 60_000 })
    const { keptSince = '' } = await source.removals(null)
    expect(Date.parse(keptSince)).toBeGreaterThan(since)
  })
})

describe('what must not be promoted', () => {
  test('a history without everything that is live stops it and is named; with the loss accepted it continues', async () => {
    const before = await readViews(live.tables, live.databases)
    emptyLog(live)
    await live.append([campaignEvent({ campaign_id: 'late', version: 3 })])
    await live.settled()
    const failure = await live.rebuild().catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c1 is in the live tables, but not in')
    expect((await readViews(live.tables, live.databases)).campaigns.length).toBe(before.campaigns.length + 1)
    await live.rebuild({ acceptsLoss: true })
    await live.settled()
    expect((await stampsOf(live)).map(({ id }) => id)).toEqual(['late'])
  })
})
