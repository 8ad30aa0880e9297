/** Two public campaigns with one slug: the API finds one of them by it, so an operator has to learn of it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter } from '../../../services/log/port.ts'
import { createProjectorService, type ProjectorService } from '../../../services/projector/service.ts'
import { createSlugWatch, type SharedSlugs } from '../../../services/projector/shared-slugs.ts'
import { statusOf } from '../../../services/projector/status.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { campaignEvent, newRecordOf } from '../../support/events/sample-events.ts'
import { hashBacker, type ModelTables, openModelTables } from '../../support/projector/model-tables.ts'

const wait = { timeout: 30_000 }
const metrics = createMetrics()
const log: string[] = []
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
    logger: pino({ level: 'info' }, { write: (line: string) => void log.push(line) }),
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

  test('is in the metrics after a fold, and in the log once, with its campaigns', async () => {
    await vi.waitFor(async () => {
      expect(await metrics.registry.metrics()).toContain('\npledgeview_shared_slugs 1\n')
    }, wait)
    const lines = log.map(line => JSON.parse(line)).filter(({ msg }) => msg.includes('same slug'))
    expect(lines).toEqual([expect.objectContaining({ slugs: 1, examples: shared.examples })])
  })

  test('is in the status, with the campaign that the API shows as the first one', async () => {
    await drained()
    const { tables } = await statusOf({ projector, tables: model.tables, databases })
    expect(tables?.shared_slugs).toEqual(shared)
  })

  test('is told of again only if it has changed', async () => {
    const looks: { found: SharedSlugs; isNew: boolean }[] = []
    const watch = createSlugWatch({
      tables: model.tables,
      databases,
      onLook: (found, isNew) => looks.push({ found, isNew }),
      onError: error => expect.unreachable(String(error)),
      sleep: async () => undefined,
    })
    const abort = new AbortController()
    const running = watch.run(abort.signal)
    for (const looked of [1, 2]) {
      watch.noteFold()
      await vi.waitFor(() => expect(looks).toHaveLength(looked), wait)
    }
    await writer.append([campaign('c2', 'lanterns-of-paper', 2)])
    await drained()
    watch.noteFold()
    await vi.waitFor(() => expect(looks).toHaveLength(3), wait)
    expect(looks).toEqual([
      { found: shared, isNew: true },
      { found: shared, isNew: false },
      { found: { count: 0, examples: [] }, isNew: true },
    ])
    abort.abort()
    await running
  })
})
