/** What a producer does wrong is told by topic, in the status and in the metrics, and stops nothing. What is in order is never told. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter } from '../../../services/log/port.ts'
import { createProjectorService, type ProjectorService } from '../../../services/projector/service.ts'
import { statusOf } from '../../../services/projector/status.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics, type Metrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases } from '../../../services/tables/port.ts'
import {
  apiKeyEvent,
  campaignEvent,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
  sampleReward,
} from '../../support/events/sample-events.ts'
import { hashBacker, type ModelTables, openModelTables } from '../../support/projector/model-tables.ts'

const wait = { timeout: 60_000 }
let metrics: Metrics
let model: ModelTables
let databases: Databases
let root: string
let writer: EventWriter
let reader: EventReader
let projector: ProjectorService
let stop: () => Promise<void>

beforeEach(async () => {
  metrics = createMetrics()
  model = await openModelTables()
  databases = await model.freshDatabases()
  root = await mkdtemp(join(tmpdir(), 'pledgeview-producers-'))
  writer = await openJournalWriter(join(root, 'journal.sqlite'))
  reader = await openJournalReader(join(root, 'journal.sqlite'), { consumer: 'projector' })
  projector = createProjectorService({
    ...{ reader, tables: model.tables, databases, hashBacker, run: 'run', metrics },
    config: readConfig({ PLEDGEVIEW_FOLD_MS_MAX: '30000', PLEDGEVIEW_BATCH_MS_MAX: '50' }),
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

afterEach(async () => {
  await stop()
  await reader.close()
  await writer.close()
  await model.dispose()
  await rm(root, { recursive: true, force: true })
})

async function project(...events: ChangeEvent[]): Promise<void> {
  await writer.append(events.map(newRecordOf))
  await vi.waitFor(async () => expect(await projector.isDrained()).toBe(true), wait)
}

async function compared(topic: string, outcome: string): Promise<number> {
  const { values } = await metrics.comparedVersions.get()
  const found = values.find(({ labels }) => Object.values(labels).join(' ') === `${topic} ${outcome}`)
  return found?.value ?? 0
}

/** Projects the events again and again until one of these was compared: a batch that comes soon after a comparison is not. */
async function untilCompared(topic: string, outcome: string, ...events: ChangeEvent[]): Promise<void> {
  const before = await compared(topic, outcome)
  await vi.waitFor(async () => {
    await project(...events)
    expect(await compared(topic, outcome)).toBeGreaterThan(before)
  }, wait)
}

const status = async () => (await statusOf({ projector, tables: model.tables, databases })).producers

test('stale versions and versions of two states are counted by topic, each with its place, and change nothing', async () => {
  const campaign = (version: number, title: string) => campaignEvent({ campaign_id: 'c', version, title })
  const pledge = (version: number, amount_minor: number, pledge_id = 'p') =>
    pledgeEvent({ campaign_id: 'c', pledge_id, version, amount_minor })
  const key = (version: number, secret_hash = 'ab'.repeat(32)) =>
    apiKeyEvent({ key: 'k', account_id: 'a', version, secret_hash })
  await project(
    campaign(5, 'Lanterns'),
    pledge(7, 100),
    key(3),
    pledge(2, 500, 'gone'),
    pledgeTombstone('c', 'gone'),
  )
  const before = await model.tables.rows({ query: `SELECT * FROM ${databases.views}.campaigns` })

  await untilCompared('campaigns', 'stale', campaign(4, 'Lamps'))
  await untilCompared('pledges', 'stale', pledge(6, 900))
  await untilCompared('pledges', 'stale', pledge(3, 900, 'gone'))
  await untilCompared('api-keys', 'stale', key(2))
  await untilCompared('api-keys', 'conflicting', key(3, 'cd'.repeat(32)))
  expect(await compared('campaigns', 'conflicting')).toBe(0)
  expect(await compared('pledges', 'conflicting')).toBe(0)
  expect(await model.tables.rows({ query: `SELECT * FROM ${databases.views}.campaigns` })).toEqual(before)

  await untilCompared('campaigns', 'conflicting', campaign(5, 'Lamps'))
  await untilCompared('pledges', 'conflicting', pledge(7, 101))
  await stop()
  stop = async () => undefined
  const { versions } = (await status()) ?? {}
  expect(versions?.map(({ topic }) => topic)).toEqual(['api-keys', 'campaigns', 'pledges'])
  for (const { stale, conflicting, examples } of versions ?? []) {
    expect(stale).toBeGreaterThan(0)
    expect(conflicting).toBeGreaterThan(0)
    expect(examples.join()).toMatch(/stale [a-z-]+\/0\/\d+/)
    expect(examples.join()).toMatch(/conflicting [a-z-]+\/0\/\d+/)
  }
}, 240_000)

test('nothing of a producer that keeps the order is counted, with many versions of few keys in every batch, and each event twice', async () => {
  let version = 0
  await vi.waitFor(
    async () => {
      const events = Array.from({ length: 40 }, (_, n) => [
        campaignEvent({ campaign_id: `c${n % 3}`, version: ++version }),
        pledgeEvent({ campaign_id: `c${n % 3}`, pledge_id: 'p', version, amount_minor: version }),
      ]).flat()
      await writer.append([...events, ...events.slice(-6)].map(newRecordOf))
      expect(await compared('campaigns', 'in_order')).toBeGreaterThan(500)
      expect(await compared('pledges', 'in_order')).toBeGreaterThan(500)
    },
    { timeout: 100_000, interval: 20 },
  )
  await vi.waitFor(async () => expect(await projector.isDrained()).toBe(true), wait)
  for (const topic of ['campaigns', 'pledges']) {
    expect(await compared(topic, 'conflicting')).toBe(0)
    // The last six of a round come again after newer ones of other keys only.
    expect(await compared(topic, 'stale')).toBe(0)
  }
}, 120_000)

test('pledges of campaigns that never came, and claims beyond the quantity of a tier, are told with examples until they are mended', async () => {
  const reward = sampleReward({ reward_id: 'early', quantity_available: 2 })
  const claim = (pledge_id: string) => pledgeEvent({ campaign_id: 'c', pledge_id, reward_id: 'early' })
  await project(
    campaignEvent({
      campaign_id: 'c',
      rewards: [reward, sampleReward({ reward_id: 'free', quantity_available: null })],
    }),
    campaignEvent({ campaign_id: 'draft', status: 'DRAFT' }),
    ...['a', 'b', 'd', 'e'].map(claim),
    pledgeEvent({ campaign_id: 'c', pledge_id: 'f', reward_id: 'free' }),
    pledgeEvent({ campaign_id: 'draft', pledge_id: 'p' }),
    pledgeEvent({ campaign_id: 'lost', pledge_id: 'p' }),
    pledgeEvent({ campaign_id: 'lost', pledge_id: 'q' }),
    pledgeEvent({ campaign_id: 'lost', pledge_id: 'r', status: 'REFUNDED' }),
  )
  expect(await status()).toEqual({
    versions: [],
    unknown_campaigns: {
      campaigns: 1,
      pledges: 2,
      examples: ['lost'],
      since: expect.stringMatching(/^2\S+Z$/),
    },
    oversold_tiers: { tiers: 1, claims: 2, examples: ['c/early'] },
  })
  await vi.waitFor(async () => {
    const text = await metrics.registry.metrics()
    expect(text).toContain('\npledgeview_unknown_campaign_pledges 2\n')
    expect(text).toContain('\npledgeview_oversold_claims 2\n')
  }, wait)

  await project(
    campaignEvent({ campaign_id: 'lost' }),
    campaignEvent({ campaign_id: 'c', version: 9, rewards: [] }),
  )
  expect(await status()).toMatchObject({
    unknown_campaigns: { campaigns: 0, pledges: 0, examples: [], since: null },
    oversold_tiers: { tiers: 0, claims: 0, examples: [] },
  })
}, 120_000)
