/** Two public campaigns with one slug: the API finds one of them by it, so an operator has to learn of it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter } from '../../../services/log/port.ts'
import { createProjectorService, type ProjectorService } from '../../../services/projector/service.ts'
import { statusOf } from '../../../services/projector/status.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { campaignEvent, newRecordOf } from '../../support/events/sample-events.ts'
import { hashBacker, type ModelTables, openModelTables } from '../../support/projector/model-tables.ts'

const wait = { timeout: 30_000 }
const metrics = createMetrics()
let model: ModelTables
let databases: Databases
let root: string
let writer: EventWriter
let reader: EventReader
let projector: ProjectorService
let stop: () => Promise<void>

const campaign = (campaign_id: string, slug: string, version = 1, status: 'LIVE' | 'DRAFT' = 'LIVE') =>
  newRecordOf(campaignEvent({ campaign_id, slug, version, status }))

const drained = () => vi.waitFor(async () => expect(await projector.isDrained()).toBe(true), wait)

beforeAll(async () => {
  model = await openModelTables()
  databases = await model.freshDatabases()
  root = await mkdtemp(join(tmpdir(), 'pledgeview-slugs-'))
  writer = await openJournalWriter(join(root, 'journal.sqlite'))
  reader = await openJournalReader(join(root, 'journal.sqlite'), { consumer: 'projector' })
  await writer.append([
    campaign('c2', 'lanterns'),
    campaign('c1', 'lanterns'),
    campaign('c3', 'boats'),
    campaign('c4', 'boats', 1, 'DRAFT'),
  ])
  projector = createProjectorService({
    reader,
    tables: model.tables,
    databases,
    config: readConfig({ PLEDGEVIEW_FOLD_MS_MAX: '30000' }),
    hashBacker,
    run: 'run',
    metrics,
    logger: pino({ level: 'silent' }),
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: () => 0,
  })
  const abort = new AbortController()
  const running = projector.run(abort.signal)
  stop = async () => {
    abort.abort()
    await running
  }
})

afterAll(async () => {
  await stop()
  await reader.close()
  await writer.close()
  await model.dispose()
  await rm(root, { recursive: true, force: true })
})

describe('a slug that several public campaigns have', () => {
  const shared = { count: 1, examples: [{ slug: 'lanterns', campaign_ids: ['c1', 'c2'] }] }

  test('is in the metrics of the leader', async () => {
    await drained()
    await projector.beforeScrape()
    expect(await metrics.registry.metrics()).toContain('\npledgeview_shared_slugs 1\n')
  })

  test('is in the status, with the campaign that the API shows as the first one', async () => {
    await drained()
    const { tables } = await statusOf({ projector, tables: model.tables, databases })
    expect(tables?.shared_slugs).toEqual(shared)
  })
})
