/**
 * Tables that are new, or that were restored from an older backup, on a server whose clock is behind the lost one's: a poller of
 * the lost tables misses nothing. A watermark ahead of the clock stands for the clock of the lost server.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { openJournalReader, openJournalWriter } from '../../../../services/log/local/journal.ts'
import type { EventWriter } from '../../../../services/log/port.ts'
import { createProjectorService } from '../../../../services/projector/service.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { hashBacker, type ModelTables, openModelTables } from '../../../support/model-tables.ts'
import { campaignEvent, newRecordOf } from '../../../support/sample-events.ts'

const aheadMs = 40 * 60_000
// Only a hang takes this long.
const soon = { timeout: 60_000 }

let model: ModelTables
let directory: string
let journal: string
let writer: EventWriter
let runs = 0

beforeAll(async () => {
  model = await openModelTables()
})

afterAll(() => model.dispose())

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pledgeview-restored-'))
  journal = join(directory, 'journal.sqlite')
  writer = await openJournalWriter(journal)
  return async () => {
    await writer.close()
    await rm(directory, { recursive: true, force: true })
  }
})

test.each(['new and empty', 'an older copy'])(
  'that are %s get no stamp below the watermarks of the lost ones',
  async what => {
    const [lost, restored] = [await model.freshDatabases(), await model.freshDatabases()]
    if (what === 'an older copy') await fold(restored, 'a', 'b')
    await model.tables.run({
      query: `INSERT INTO ${lost.read}.watermarks (shard, reached)
            SELECT '', now64(3, 'UTC') + toIntervalMillisecond({ahead:UInt32}) SETTINGS async_insert = 0`,
      query_params: { ahead: aheadMs },
    })
    await fold(lost, 'c')
    // The log is idle, so nothing but the watermark is committed.
    await fold(lost)
    const since = await watermarkOf(lost)
    expect(since).toBeGreaterThan(Date.now() + aheadMs / 2)

    await fold(restored, 'd', 'e')
    expect(await changedSince(restored, since)).toEqual(['d', 'e'])
    expect(await watermarkOf(restored)).toBeGreaterThan(since)
  },
)

/** Appends campaigns, and projects them into these tables until they are folded. */
async function fold(databases: Databases, ...ids: string[]): Promise<void> {
  await writer.append(ids.map(campaign_id => newRecordOf(campaignEvent({ campaign_id }))))
  const reader = await openJournalReader(journal, { consumer: 'projector' })
  runs++
  const service = createProjectorService({
    reader,
    tables: model.tables,
    databases,
    config: readConfig({}),
    hashBacker,
    run: `run-${runs}`,
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: () => 0,
  })
  const stop = new AbortController()
  const done = service.run(stop.signal)
  const before = await watermarkOf(databases)
  try {
    await vi.waitFor(async () => {
      expect(await service.isDrained()).toBe(true)
      // It is written while there is nothing to fold, too.
      expect(await watermarkOf(databases)).toBeGreaterThan(before)
    }, soon)
  } finally {
    stop.abort()
    await done
    await reader.close()
  }
}

/** What a list says as X-Data-As-Of, Unix ms. */
async function watermarkOf({ read: database }: Databases): Promise<number> {
  const [row] = await model.tables.rows<{ at: number }>({
    query: `SELECT toUnixTimestamp64Milli(max(reached)) AS at FROM ${database}.watermark`,
  })
  return row?.at ?? 0
}

/** What a poll with this watermark brings. */
async function changedSince({ views }: Databases, since: number): Promise<string[]> {
  const rows = await model.tables.rows<{ id: string }>({
    query: `SELECT campaign_id AS id FROM ${views}.campaigns
            WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') ORDER BY id`,
    query_params: { since },
  })
  return rows.map(({ id }) => id)
}
