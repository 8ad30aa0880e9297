/**
 * Positions that stand with the data: a projector reads on from the tables, whatever the log has been told. Tables that were restored
 * from a backup are noticed, and no poller of the lost ones misses a change.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventWriter } from '../../../services/log/port.ts'
import { createSqlListSource } from '../../../services/query/lists/campaign-lists.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { isWatermark, obstructed } from '../../support/clickhouse/faulty-tables.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { backUpTables, projectJournal, projectorOf, watermarkIn } from '../../support/projector/positions.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

const model = useModelTables()
let databases: Databases
let directory: string
let journal: string
let writer: EventWriter
let warnings: string[]

beforeEach(async () => {
  databases = await model.freshDatabases()
  directory = await mkdtemp(join(tmpdir(), 'pledgeview-positions-'))
  journal = join(directory, 'journal.sqlite')
  writer = await openJournalWriter(journal)
  warnings = []
  return async () => {
    await writer.close()
    await rm(directory, { recursive: true, force: true })
    await model.giveBack(databases)
  }
})

const place = () => ({
  tables: model.tables,
  databases,
  warn: (message: string) => void warnings.push(message),
})
const watermark = () => watermarkIn(place())

/** Appends events, and projects them. Resolves with the records that were read. */
async function project(...events: ChangeEvent[]): Promise<number> {
  await writer.append(events.map(newRecordOf))
  return projectJournal(journal, place())
}

/** What a poll with this watermark brings: the titles, by id. */
async function changedSince(since: number): Promise<Record<string, string>> {
  const rows = await model.tables.rows<{ id: string; title: string }>({
    query: `SELECT campaign_id AS id, title FROM ${databases.views}.campaigns
            WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') ORDER BY id`,
    query_params: { since },
  })
  return Object.fromEntries(rows.map(({ id, title }) => [id, title]))
}

/** Copies all tables, and returns what puts the copies back. `hoursAgo`: when the backup's batches were written. */
async function backUp({ hoursAgo = 0 } = {}): Promise<() => Promise<void>> {
  const { tables } = model
  if (hoursAgo > 0) {
    for (const [table, column] of [
      ['batch_log', 'appended_at'],
      ['positions', 'written_at'],
    ]) {
      await tables.run({
        query: `ALTER TABLE ${databases.ledger}.${table} UPDATE ${column} = ${column} - INTERVAL ${hoursAgo} HOUR WHERE 1 SETTINGS mutations_sync = 2`,
      })
    }
  }
  const { base, ledger, read } = databases
  return backUpTables(tables, [base, ledger, read])
}

const removals = () =>
  createSqlListSource(model.tables, databases, { keptMs: 86_400_000, msMax: 60_000 }).removals(null)

const campaign = (campaign_id: string, version = 1, more = {}) =>
  campaignEvent({ campaign_id, version, title: `${campaign_id} ${version}`, ...more })

test('a projector reads a log from its start that was replaced: it has another record where it stopped', async () => {
  await project(campaign('a'), campaign('b'))
  await replaceJournal()
  expect(await project(campaign('c'), campaign('d'), campaign('e'))).toBe(3)
  expect(warnings).toEqual([
    expect.stringContaining('campaigns/0: the record at 2 is not the one that was read'),
  ])
  // The position in the new log counts now.
  expect(await project(campaign('f'))).toBe(1)
  expect(warnings).toHaveLength(1)
  expect(Object.keys(await changedSince(0))).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})

async function replaceJournal(): Promise<void> {
  await writer.close()
  for (const suffix of ['', '-wal', '-shm']) await rm(`${journal}${suffix}`, { force: true })
  writer = await openJournalWriter(journal)
}

describe('tables that were restored from a backup', () => {
  test('tell no removal that they cannot know, and say from when on they know all', async () => {
    const draft = { status: 'DRAFT' } as const
    await project(campaign('a'), campaign('left'), campaign('draft', 1, draft))
    await project(campaign('left', 2, draft))
    const before = await removals()
    expect(before.ids.page(9, 0)).toEqual([expect.stringMatching(/ left$/)])
    const restore = await backUp()
    await project(campaign('a', 2, draft), campaign('unknown'), campaign('draft', 2, draft))
    const since = await watermark()
    await project(campaign('unknown', 2, draft))
    await restore()
    await project()
    const { ids, keptSince = '' } = await removals()
    // `left` and `draft` are read again, too, because a backup is no single moment.
    expect(ids.page(9, 0).filter(entry => !/ (?:a|left)$/.test(entry))).toEqual([])
    expect(Date.parse(keptSince)).toBeGreaterThan(since)
    await project(campaign('a', 3))
    await project(campaign('a', 4, draft))
    expect((await removals()).ids.page(9, 0)).toContainEqual(expect.stringMatching(/ a$/))
  })

  test('tell a poller of a change that was shown and taken back while they were lost', async () => {
    await project(campaign('a'), campaign('b'))
    const restore = await backUp({ hoursAgo: 48 })
    await project(pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: 1 }))
    const since = await watermark()
    await writer.append([
      newRecordOf(pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: 2, status: 'CANCELLED' })),
    ])
    await restore()
    await project()
    // The row of `a` is again what the backup has, so only a new stamp tells. `b` was read before the backup.
    expect(await changedSince(since)).toEqual({ a: 'a 1' })
    // Once: what comes later is compared as ever.
    const later = await watermark()
    await project(pledgeEvent({ campaign_id: 'b', pledge_id: 'q', version: 1, status: 'CANCELLED' }))
    expect(await changedSince(later)).toEqual({})
    expect(warnings).toHaveLength(1)
  })

  test('are read again from a day before, because a backup copies one table after the other, and folded whole, because it may say that something is folded that is not', async () => {
    await project(campaign('a'))
    await backUp({ hoursAgo: 48 })
    await project(campaign('b'))
    const { tables } = model
    const restore = await backUp()
    await project(campaign('c'))
    await restore()
    // The backup has the positions of `b`, and not its row; and it says that `a` is folded.
    for (const row of [
      `${databases.ledger}.campaign_ledger WHERE campaign_id = 'b'`,
      `${databases.read}.campaigns WHERE campaign_id = 'a'`,
    ])
      await tables.run({ query: `DELETE FROM ${row} SETTINGS lightweight_deletes_sync = 2` })
    // `a` was certain.
    expect(await project()).toBe(2)
    expect(Object.keys(await changedSince(0))).toEqual(['a', 'b', 'c'])
  })

  test('are read again from the start of a log that replaced another one: offsets of the old log say nothing about it', async () => {
    await project(campaign('a'), campaign('b'), campaign('c'))
    await backUp({ hoursAgo: 48 })
    await replaceJournal()
    await project(campaign('d'))
    const restore = await backUp()
    await project(campaign('e'))
    await restore()
    expect(await project()).toBe(2)
    expect(Object.keys(await changedSince(0))).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(warnings[0]).toContain('campaigns/0: it ends at 2, before 4. It is another log')
  })

  test('are noticed once, also if the projector is killed before it has read anything, and show no longer what was deleted meanwhile', async () => {
    await project(campaign('a'), campaign('b'), campaign('gone'))
    const restore = await backUp()
    await project(campaign('a', 2), campaign('gone', 2, { status: 'DRAFT' }), campaign('new'))
    await restore()
    await (await projectorOf(journal, place())).reader.close()
    await project()
    expect(await changedSince(0)).toEqual({ a: 'a 2', b: 'b 1', new: 'new 1' })
    expect(warnings).toEqual([expect.stringContaining('the tables went back')])
  })

  test('end the projector if it runs, and the next one reads again what they lack', async () => {
    await project(campaign('a'))
    const restore = await backUp()
    await project(campaign('b'))
    const stands = Promise.withResolvers<void>()
    const restored = Promise.withResolvers<void>()
    let watermarks = 0
    const tables = obstructed(model.tables, {
      // A watermark that is written between two tables of the restore could hide it. Before its second one the leader has read back its
      // first, and no other statement of the fold runs.
      async before(call) {
        if (!isWatermark(call) || ++watermarks === 1) return
        stands.resolve()
        await restored.promise
      },
    })
    const { service, reader } = await projectorOf(journal, { ...place(), tables })
    const running = service.run(new AbortController().signal)
    const ended = expect(running).rejects.toThrow('the tables went back')
    await stands.promise
    await restore()
    restored.resolve()
    await ended
    await reader.close()
    await project()
    expect(Object.keys(await changedSince(0))).toEqual(['a', 'b'])
  })
})
