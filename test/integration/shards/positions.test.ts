/** Positions on two shards: each has its own, and the lowest counts. So one shard that is restored alone gets what it lacks. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { readPositions } from '../../../services/projector/positions.ts'
import { createProjectorService } from '../../../services/projector/service.ts'
import { readConfig } from '../../../services/shared/config.ts'
import { openJournalReader, openJournalWriter } from '../../../services/shared/event-log/journal/journal.ts'
import type { EventWriter } from '../../../services/shared/event-log/port.ts'
import { createMetrics } from '../../../services/shared/ops/metrics.ts'
import { hashBacker } from '../../support/model-tables.ts'
import { positionsIn } from '../../support/positions.ts'
import { campaignEvent, campaignTombstone, newRecordOf } from '../../support/sample-events.ts'
import { type ShardServers, startShards } from '../../support/shards.ts'

const soon = { timeout: 60_000, interval: 20 }
const ids = Array.from({ length: 20 }, (_, index) => `c${index}`)

let shards: ShardServers
let directory: string
let writer: EventWriter
let warnings: string[] = []
let runs = 0

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

/** Appends events, and projects until they are folded and lists have shown them. Resolves with the records that were read. */
async function project(...events: ChangeEvent[]): Promise<number> {
  await writer.append(events.map(newRecordOf))
  const { tables, databases } = shards
  const positions = positionsIn({
    ...{ tables, databases, cluster: shards },
    warn: message => warnings.push(message),
  })
  const reader = await openJournalReader(join(directory, 'journal.sqlite'), {
    consumer: 'projector',
    starts: positions,
  })
  const service = createProjectorService({
    ...{ reader, tables, databases, shards: shards.shards, positions, hashBacker },
    config: readConfig({ PLEDGEVIEW_BATCH_MS_MAX: '20' }),
    run: `run-${++runs}`,
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: () => 0,
  })
  const stop = new AbortController()
  let failure: unknown
  const done = service.run(stop.signal).catch(error => {
    failure = error
  })
  const seen = new Set<number>()
  try {
    await vi.waitFor(async () => {
      expect(failure).toBeUndefined()
      expect(await service.isDrained()).toBe(true)
      seen.add(await watermark())
      // What was written is remembered with the next one.
      expect(seen.size).toBeGreaterThan(2)
    }, soon)
  } finally {
    stop.abort()
    await done
    await reader.close()
  }
  return service.health().records
}

async function watermark(): Promise<number> {
  const [row] = await shards.tables.rows<{ at: number }>({
    query: `SELECT toUnixTimestamp64Milli(reached) AS at FROM ${shards.databases.model}.watermark`,
  })
  return row?.at ?? 0
}

async function shown(): Promise<string[]> {
  const rows = await shards.tables.rows<{ id: string }>({
    query: `SELECT campaign_id AS id FROM ${shards.databases.views}.campaigns`,
  })
  return rows.map(({ id }) => id).toSorted()
}

/** Copies the tables of one shard, and returns what puts the copies back. */
async function backUpShard(number: number): Promise<() => Promise<void>> {
  const { tables, databases } = shards.shards[number] as (typeof shards.shards)[number]
  const { model } = databases
  const names = await tables.rows<{ name: string }>({
    query: `SELECT name FROM system.tables WHERE database = '${model}' AND engine LIKE '%MergeTree'`,
  })
  for (const { name } of names) {
    await tables.run({ query: `CREATE TABLE ${model}.backup_${name} AS ${model}.${name}` })
    await tables.run({ query: `INSERT INTO ${model}.backup_${name} SELECT * FROM ${model}.${name}` })
  }
  return async () => {
    for (const { name } of names) {
      await tables.run({ query: `TRUNCATE TABLE ${model}.${name}` })
      await tables.run({ query: `INSERT INTO ${model}.${name} SELECT * FROM ${model}.backup_${name}` })
    }
  }
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
  const restore = await backUpShard(1)
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
  const { tables, databases } = shards.shards[0] as (typeof shards.shards)[number]
  const names = await tables.rows<{ name: string }>({
    query: `SELECT name FROM system.tables WHERE database = '${databases.model}' AND engine LIKE '%MergeTree'`,
  })
  const before = await shown()
  for (const { name } of names) await tables.run({ query: `TRUNCATE TABLE ${databases.model}.${name}` })
  expect((await shown()).length).toBeLessThan(before.length)
  expect(await project()).toBe(60)
  expect(await shown()).toEqual(before)
  expect(await nextOnShards()).toEqual([61, 61])
  expect(await project()).toBe(0)
})
