/** What a producer does wrong is told by topic, in the status and in the metrics, and stops nothing. What is in order is never told. */
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import { beforeEach, expect, test, vi } from 'vitest'
import type { ChangeEvent, Topic } from '../../../contracts/events/event.ts'
import { printStatus } from '../../../services/commands/status/status.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { createObserver } from '../../../services/projector/observer.ts'
import { createFaultReport } from '../../../services/projector/producers/fault-report.ts'
import {
  type ComparedVersions,
  createVersionCheck,
  type Outcome,
  versionFault,
} from '../../../services/projector/producers/versions.ts'
import { readVersionFaults, writeNote } from '../../../services/projector/projector-log.ts'
import { reachedTables, statusOf, tablesStatus } from '../../../services/projector/status.ts'
import { createMetrics, type Metrics } from '../../../services/runtime/ops/metrics.ts'
import { createMemoryLog } from '../../support/events/memory-log.ts'
import {
  apiKeyEvent,
  campaignEvent,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
  sampleReward,
} from '../../support/events/sample-events.ts'
import { createIngest, hashBacker } from '../../support/projector/model-tables.ts'
import { positionsIn } from '../../support/projector/positions.ts'
import { type RunningProjector, useProjector } from '../../support/projector/running-projector.ts'

const wait = { timeout: 60_000 }
const world = useProjector()
let metrics: Metrics
let projector: RunningProjector | undefined

beforeEach(() => {
  metrics = createMetrics()
  projector = undefined
})

function start(): void {
  projector = world.start({ metrics, settings: { PLEDGEVIEW_BATCH_MS_MAX: '50' } })
}

async function project(...events: ChangeEvent[]): Promise<void> {
  await world.writer.append(events.map(newRecordOf))
  await projector?.drained()
}

async function compared(topic: string, outcome: string): Promise<number> {
  const { values } = await metrics.comparedVersions.get()
  const found = values.find(({ labels }) => Object.values(labels).join(' ') === `${topic} ${outcome}`)
  return found?.value ?? 0
}

async function wholeStatus() {
  if (projector === undefined) return expect.unreachable()
  return statusOf({ projector: projector.service, tables: world.tables, databases: world.databases })
}

const status = async () => (await wholeStatus()).producers

/** What `pledgeview status` prints of it. */
async function printed(): Promise<string> {
  const stdout = new PassThrough()
  printStatus([], { ...(await wholeStatus()), cache_seconds_max: 0 }, { stdout })
  return String(stdout.read())
}

const campaign = (version: number, title = 'Lanterns') => campaignEvent({ campaign_id: 'c', version, title })
const pledge = (version: number, amount_minor = 100, pledge_id = 'p') =>
  pledgeEvent({ campaign_id: 'c', pledge_id, version, amount_minor })
const key = (version: number, secret_hash = 'ab'.repeat(32), name = 'k') =>
  apiKeyEvent({ key: name, account_id: 'a', version, secret_hash })

/** Compares what a batch of these events has, as the projector does when it begins to write it. */
function compareTo(onCompared: (found: ComparedVersions) => void) {
  const check = createVersionCheck({
    ...{ tables: world.tables, databases: world.databases, hashBacker, decode: createDecoder(), onCompared },
    onError: error => expect.unreachable(error.message),
    monotonicMs: () => 0,
  })
  return {
    next(...events: ChangeEvent[]) {
      check.next(
        events.map((event, offset) => ({ ...newRecordOf(event), partition: 0, offset, appendedAt: 0 })),
      )
    },
    close: check.close,
  }
}

test('stale versions and one version for two states are told by topic, with their places', async () => {
  await createIngest(
    world.tables,
    world.databases,
  )([
    campaign(5),
    pledge(7),
    pledge(7, 100, 'q'),
    key(3),
    key(3, 'ab'.repeat(32), 'k2'),
    pledge(2, 5, 'gone'),
    pledgeTombstone('c', 'gone'),
  ])
  const report = createFaultReport({
    warn: () => undefined,
    write: note => writeNote(world.tables, world.databases, 'run', note),
    onFailure: error => expect.unreachable(error.message),
    monotonicMs: () => 0,
  })
  const observer = createObserver({ metrics, logger: pino({ level: 'silent' }) })
  const { next, close } = compareTo(found => {
    observer.onCompared(found)
    report.note(versionFault(found))
  })
  next(
    campaign(4, 'Lamps'),
    pledge(6, 900),
    pledge(7, 101, 'q'),
    pledge(3, 900, 'gone'),
    pledge(8, 100, 'r'),
    // After others of the same batch.
    pledge(7, 100, 'r'),
    pledge(8, 101, 'r'),
    key(2),
    key(3, 'cd'.repeat(32), 'k2'),
    key(4),
  )
  await close()
  await report.close()
  expect(await readVersionFaults(world.tables, world.databases)).toEqual(
    [
      {
        topic: 'api-keys',
        stale: 1,
        conflicting: 1,
        examples: ['stale api-keys/0/7', 'conflicting api-keys/0/8'],
      },
      { topic: 'campaigns', stale: 1, conflicting: 0, examples: ['stale campaigns/0/0'] },
      {
        ...{ topic: 'pledges', stale: 3, conflicting: 2 },
        examples: [
          ...['stale pledges/0/1', 'conflicting pledges/0/2', 'stale pledges/0/3'],
          ...['stale pledges/0/5', 'conflicting pledges/0/6'],
        ],
      },
    ].map(one => ({ ...one, last_at: expect.stringMatching(/^2\S+Z$/) })),
  )
  expect(await compared('pledges', 'stale')).toBe(3)
  expect(await compared('pledges', 'conflicting')).toBe(2)
  expect(await compared('pledges', 'in_order')).toBe(1)
})

test('the first records of a kind and topic are told at once, and later ones within a minute, also if none follows', async () => {
  const told: object[] = []
  let seconds = 0
  const report = createFaultReport({
    warn: found => void told.push({ seconds, ...found }),
    write: async () => undefined,
    onFailure: error => expect.unreachable(error.message),
    monotonicMs: () => seconds * 1_000,
  })
  const note = (topic: Topic) =>
    report.note({ kind: 'misplaced', detail: { topic, counts: { records: 1 }, examples: [] } })
  note('pledges')
  for (seconds = 10; seconds <= 120; seconds += 10) {
    if (seconds <= 30) note('pledges')
    if (seconds === 40) note('campaigns')
    report.turn()
  }
  expect(told).toMatchObject([
    { seconds: 0, topic: 'pledges', counts: { records: 1 } },
    { seconds: 40, topic: 'campaigns', counts: { records: 1 } },
    { seconds: 60, topic: 'pledges', counts: { records: 3 } },
  ])
  await report.close()
  expect(told).toHaveLength(3)
})

test('records in a wrong partition are projected, and told in the log, the metrics and the status, which another process reads too', async () => {
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: line => void lines.push(line) })
  const { reader, append } = createMemoryLog()
  const misplaced = ['c1', 'c2'].map(campaign_id => newRecordOf(campaignEvent({ campaign_id })))
  append(
    misplaced.map(record => ({ ...record, isMisplaced: true })),
    { partition: 4 },
  )
  append([newRecordOf(campaign(1))])
  projector = world.start({ reader, metrics, logger })
  await projector.drained()
  await projector.stop()

  expect(await metrics.registry.metrics()).toContain(
    'pledgeview_misplaced_records_total{topic="campaigns"} 2',
  )
  const found = lines.filter(line => line.includes('records are not in the partition of their key'))
  expect(found.map(line => JSON.parse(line))).toMatchObject([
    { topic: 'campaigns', counts: { records: 2 }, examples: ['campaigns/4 c1', 'campaigns/4 c2'] },
  ])
  const ofTables = await reachedTables(() =>
    tablesStatus({ tables: world.tables, databases: world.databases }),
  )
  expect(ofTables).toMatchObject({
    tables: { public_campaigns: 3 },
    misplaced: { records: 2, last_at: expect.any(String), examples: ['campaigns/4 c1', 'campaigns/4 c2'] },
  })
  const stdout = new PassThrough()
  printStatus([], { ...ofTables, projector: { lag: [], warnings: [] }, cache_seconds_max: 0 }, { stdout })
  expect(String(stdout.read())).toMatch(/^misplaced +2 records .*\n +campaigns\/4 c1\n +campaigns\/4 c2$/m)
})

test('what is in order is never counted, with many versions of few keys in each batch, and while the batch itself comes into the ledger', async () => {
  const ingest = createIngest(world.tables, world.databases)
  const found: ComparedVersions[] = []
  const { next, close } = compareTo(one => found.push(one))
  let version = 0
  for (let batch = 0; batch < 30; batch++) {
    const events = Array.from({ length: 40 }, (_, n) => [
      campaignEvent({ campaign_id: `c${n % 3}`, version: ++version }),
      pledgeEvent({ campaign_id: `c${n % 3}`, pledge_id: 'p', version, amount_minor: version }),
    ]).flat()
    // The last state of each key once more, as after a kill.
    const all = [...events, ...events.slice(-6)]
    next(...all)
    // A few answers come from before the write, and most from during it.
    if (batch % 3 === 0) await close()
    await ingest(all)
    await close()
  }
  const sum = (outcome: Outcome) => found.reduce((all, { counts }) => all + counts[outcome], 0)
  expect({ stale: sum('stale'), conflicting: sum('conflicting') }).toEqual({ stale: 0, conflicting: 0 })
  expect(sum('in_order')).toBe(30 * 86)
}, 120_000)

test('what is read again after a restore accuses no producer', async () => {
  await createIngest(world.tables, world.databases)([campaign(5)])
  let lostWatermark = 1
  const positions = {
    ...positionsIn(world),
    store: async () => undefined,
    restampBefore: () => lostWatermark,
    databasesOf: () => world.databases,
  }
  projector = world.start({ metrics, positions })
  await project(campaign(3))
  // It waits for a comparison.
  await projector.stop()
  expect(await compared('campaigns', 'stale')).toBe(0)
  lostWatermark = 0
  projector = world.start({ metrics, positions })
  await project(campaign(4))
  await projector.stop()
  expect(await compared('campaigns', 'stale')).toBe(1)
})

test('pledges of campaigns that never came, claims beyond the quantity of a tier, and slugs that several public campaigns have, are told with examples until they are mended', async () => {
  start()
  const reward = sampleReward({ reward_id: 'early', quantity_available: 2 })
  const claim = (pledge_id: string) => pledgeEvent({ campaign_id: 'c', pledge_id, reward_id: 'early' })
  await project(
    campaignEvent({
      campaign_id: 'c',
      rewards: [reward, sampleReward({ reward_id: 'free', quantity_available: null })],
    }),
    campaignEvent({ campaign_id: 'draft', status: 'DRAFT', slug: 'slug-a' }),
    // The API finds one of them by the slug: the one that is named first.
    ...['b', 'a'].map(campaign_id => campaignEvent({ campaign_id, slug: 'slug-a' })),
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
  const { tables } = await wholeStatus()
  expect(tables?.shared_slugs).toEqual({
    count: 1,
    examples: [{ slug: 'slug-a', campaign_ids: ['a', 'b'] }],
  })
  expect(await printed()).toMatch(
    /^unknown +2 pledges of 1 campaigns that never came: lost, these since 2\S+Z$/m,
  )
  await vi.waitFor(async () => {
    await projector?.service.beforeScrape()
    const text = await metrics.registry.metrics()
    expect(text).toContain('\npledgeview_unknown_campaign_pledges 2\n')
    expect(text).toContain('\npledgeview_oversold_claims 2\n')
    expect(text).toContain('\npledgeview_shared_slugs 1\n')
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
