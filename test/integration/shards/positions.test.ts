/** Positions on two shards: each has its own, and the lowest counts. So one shard that is restored alone gets what it lacks. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventWriter } from '../../../services/log/port.ts'
import { readPositions } from '../../../services/projector/positions/positions.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { type ShardServers, startShards } from '../../support/clickhouse/shards.ts'
import { campaignEvent, campaignTombstone, newRecordOf } from '../../support/events/sample-events.ts'
import { backUpTables, projectJournal, tablesOf } from '../../support/projector/positions.ts'

const ids = Array.from({ length: 20 }, (_, index) => `c${index}`)

let shards: ShardServers
let directory: string
let writer: EventWriter
let warnings: string[] = []

beforeAll(async () => {
  shards = await startShards(2)
  directory = await mkdtemp(join(tmpdir(), 'pledgeview-shard-positions-'))
  writer = await openJournalWriter(join(directory, 'journal.sqlite'))
})

afterAll(async () => {
  await writer?.close()
  await shards?.stop()
  await rm(directory, { recursive: true, force: true })
})

/** Appends events, and projects them. Resolves with the records that were read. */
async function project(...events: ChangeEvent[]): Promise<number> {
  await writer.append(events.map(newRecordOf))
  const { tables, databases } = shards
  const warn = (message: string) => warnings.push(message)
  return projectJournal(join(directory, 'journal.sqlite'), { tables, databases, cluster: shards, warn })
}

async function shown(): Promise<string[]> {
  const rows = await shards.tables.rows<{ id: string }>({
    query: `SELECT campaign_id AS id FROM ${shards.databases.views}.campaigns`,
  })
  return rows.map(({ id }) => id).toSorted()
}

/** The tables of a shard, and the databases of their generation. */
function generationOn(number: number): [tables: Tables, databases: string[]] {
  const { tables, databases } = shards.shards[number] as (typeof shards.shards)[number]
  return [tables, [databases.ledger, databases.read]]
}

async function nextOnShards(): Promise<(number | undefined)[]> {
  const found = await Promise.all(shards.shards.map(shard => readPositions([shard], '')))
  return found.map(({ ofLog }) => ofLog.get('campaigns/0')?.next)
}

test('are written to each shard, and a projector reads on from them', async () => {
  expect(await project(...ids.map(campaign_id => campaignEvent({ campaign_id })))).toBe(20)
  expect(await nextOnShards()).toEqual([21, 21])
  expect(await project()).toBe(0)
  expect(await shown()).toEqual(ids.toSorted())
})

test('a shard that is restored alone is noticed, and gets what it lacks: deletions and new campaigns', async () => {
  const restore = await backUpTables(...generationOn(1))
  const more = Array.from({ length: 20 }, (_, index) => `d${index}`)
  await project(...ids.map(campaignTombstone), ...more.map(campaign_id => campaignEvent({ campaign_id })))
  expect(await shown()).toEqual(more.toSorted())
  await restore()
  expect(await nextOnShards()).toEqual([61, 21])
  // The shard alone shows the old ones again.
  expect(await shown()).not.toEqual(more.toSorted())

  warnings = []
  await project()
  expect(warnings).toEqual([expect.stringContaining('the tables went back')])
  expect(await shown()).toEqual(more.toSorted())
  expect(await nextOnShards()).toEqual([61, 61])
  expect(await project()).toBe(0)
  expect(warnings).toHaveLength(1)
})

test('a shard whose tables are empty is filled from the start of the log', async () => {
  const [tables, databases] = generationOn(0)
  const before = await shown()
  for (const [database, name] of await tablesOf(tables, databases))
    await tables.run({ query: `TRUNCATE TABLE ${database}.${name}` })
  expect((await shown()).length).toBeLessThan(before.length)
  expect(await project()).toBe(60)
  expect(await shown()).toEqual(before)
  expect(await nextOnShards()).toEqual([61, 61])
  expect(await project()).toBe(0)
})
