/**
 * The restores of deploy/restore.md in which Kafka is lost, on real brokers and real ClickHouse servers: a new, empty Kafka is
 * filled from last night's copy of the topics. With the tables at hand nothing changes for a reader. With the tables of last
 * night's backup, the deletions since then are appended again first. No deletion is undone.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { type ClickHouse, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { type Deployment, deploy } from '../../support/deployment/deployment.ts'
import {
  onTables,
  type SeenCampaign,
  sameWhile,
  seenCampaigns,
} from '../../support/deployment/seen-campaigns.ts'
import type { ServiceProcess } from '../../support/deployment/service-process.ts'
import {
  issueCredentials,
  untilAccepted,
  untilDrained,
  untilLeads,
} from '../../support/events/kickstarter.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { type KafkaBroker, startKafka } from '../../support/kafka/broker.ts'
import { kafkaRequirement } from '../../support/kafka/jars.ts'
import { copyPositions, copyTopics, restoreTopics, type TopicCopy } from '../../support/kafka/topic-copy.ts'
import { kafkaAt } from '../../support/kafka/topics.ts'
import { needs, type Requirement } from '../../support/runner/requirements.ts'

const kafkaVersion = '4.4.0'
const group = 'pledgeview-projector'
const backups = mkdtempSync(join(tmpdir(), 'pledgeview-backups-'))
const backup = ['pledgeview', 'pledgeview_ledger_1', 'pledgeview_read_1', 'crowdfunding']
  .map(name => `DATABASE ${name}`)
  .join(', ')
const file = `File('${backups}/night/')`
// Only a hang takes this long. A key has 120 requests a minute.
const pollTimes = { timeout: 240_000, interval: 1_000 }
const more = { backups: { allowed_path: backups, allow_concurrent_backups: 'false' } }

type Headers = Readonly<Record<string, string>>

let requirement: Requirement
const brokers: KafkaBroker[] = []
const servers: ClickHouse[] = []
let deployment: Deployment
let query: ServiceProcess
let night: TopicCopy[]
/** Keys: issued before the copy, revoked after it, and issued after it. */
let kept: Headers
let revoked: Headers
let late: Headers
/** What readers saw when Kafka was lost, and the watermark of a poller that had it all. */
let before: SeenCampaign[]
let watermark: number
let polls = 0

const tombstone = (type: string, key: string) => `${JSON.stringify({ type, key, data: null })}\n`
const lines = (...events: Parameters<typeof formatEvent>[0][]) =>
  events.map(event => `${formatEvent(event)}\n`).join('')
const history = [
  lines(
    ...['same', 'changed', 'deleted', 'hidden', 'gone'].map(campaign_id => campaignEvent({ campaign_id })),
  ),
  lines(...['p', 'q'].map(pledge_id => pledgeEvent({ campaign_id: 'same', pledge_id }))),
  // Compaction leaves only the last state of a campaign: a copy has fewer records, so other offsets.
  ...Array.from({ length: 20 }, (_, version) =>
    lines(campaignEvent({ campaign_id: 'gone', version: version + 2 })),
  ),
  tombstone('campaign', 'gone'),
  lines(campaignEvent({ campaign_id: 'before-copy' })),
].join('')
/** Between the backup of ClickHouse and the copy of Kafka. */
const deletedBeforeCopy = tombstone('campaign', 'before-copy')
const deletions = [
  tombstone('campaign', 'deleted'),
  tombstone('pledge', 'same/q'),
  lines(campaignEvent({ campaign_id: 'hidden', version: 2, status: 'SUSPENDED' })),
].join('')
const changes = lines(
  campaignEvent({ campaign_id: 'changed', version: 2, title: 'Changed after the copy' }),
  campaignEvent({ campaign_id: 'new' }),
)

beforeAll(async () => {
  requirement = await kafkaRequirement(kafkaVersion)
  if (!requirement.isMet) return
  const [kafka, clickHouse] = await Promise.all([startKafka(kafkaVersion), startClickHouse({ more })])
  brokers.push(kafka)
  servers.push(clickHouse)
  deployment = await deploy({ kafka: kafka.address, clickHouse }, { PLEDGEVIEW_KAFKA_PARTITIONS: '2' })
  const projector = await deployment.startProjector()
  await Promise.all([untilLeads(projector), append(history)])
  ;[kept, revoked, query] = await Promise.all([
    issueCredentials(deployment.command, 'kept'),
    issueCredentials(deployment.command, 'revoked'),
    deployment.startQuery(),
  ])
  await untilDrained(projector)
  await onTables(clickHouse, tables => tables.run({ query: `BACKUP ${backup} TO ${file}` }))
  await append(deletedBeforeCopy)
  await untilDrained(projector)
  night = await copyTopics(kafkaAt(kafka.address))

  const [issued, { code, stderr }] = await Promise.all([
    issueCredentials(deployment.command, 'late'),
    deployment.command(['keys', 'revoke', revoked['X-API-Key'] ?? '']),
    append(`${deletions}${changes}`),
  ])
  expect(code, stderr).toBe(0)
  late = issued
  await untilDrained(projector)
  await untilAccepted(query.apiUrl, late)
  before = await seenCampaigns(clickHouse)
  watermark = await watermarkPast(before, query)
  await projector.stop()
  await kafka.stop()
}, 480_000)

beforeEach(context => needs(context, requirement))

afterAll(async () => {
  await deployment?.stop()
  await Promise.all([...servers, ...brokers].map(service => service.stop()))
  rmSync(backups, { recursive: true, force: true })
})

test('the copy has each record with its partition, key, headers and time, and each topic with its settings', async () => {
  const settings = kafkaAt((await newKafka()).address)
  await restoreTopics(settings, night)
  expect(await copyTopics(settings)).toEqual(night)
  expect(night.find(({ topic }) => topic.topic === 'campaigns')).toMatchObject({
    topic: {
      numPartitions: 2,
      configEntries: expect.arrayContaining([{ name: 'cleanup.policy', value: 'compact' }]),
    },
    records: expect.arrayContaining([expect.objectContaining({ key: Buffer.from('gone'), value: null })]),
  })
})

describe('Kafka is lost, and ClickHouse is there', { timeout: 480_000 }, () => {
  test('the copy is read from its start, and nothing changes for a reader: no deletion is undone', async () => {
    const projector = await unchangedWhile(() => startDrained())
    await projector.stop()
    expect(before.map(({ id, title, backers }) => [id, title, backers])).toEqual([
      ['changed', 'Changed after the copy', 0],
      ['new', 'Title of new', 0],
      ['same', 'Title of same', 1],
    ])
    expect((await poll(query, watermark)).ids).toEqual([])
  })

  test('another consumer group changes nothing either: the positions are those of the tables', async () => {
    const projector = await unchangedWhile(() => startDrained({ PLEDGEVIEW_KAFKA_GROUP: 'another' }))
    expect(await recordsReadBy(projector)).toBe(0)
    await projector.stop()
    expect((await poll(query, watermark)).ids).toEqual([])
  })

  test('a key that was revoked after the copy stays refused, and one that was issued after it stays accepted', async () => {
    expect(await statusesWith(query)).toEqual({ kept: 200, late: 200, revoked: 401 })
  })

  test('what the platform publishes again changes nothing, and what comes after it is projected', async () => {
    const projector = await unchangedWhile(async () => {
      await append(`${changes}${deletions}`, newest())
      return startDrained()
    })
    await append(lines(pledgeEvent({ campaign_id: 'new', pledge_id: 'r' })), newest())
    await untilDrained(projector)
    const after = await seenCampaigns(servers[0] as ClickHouse)
    expect(after.filter(({ id }) => id !== 'new')).toEqual(before.filter(({ id }) => id !== 'new'))
    expect(after.find(({ id }) => id === 'new')).toMatchObject({ backers: 1 })
    await vi.waitFor(async () => expect((await poll(query, watermark)).ids).toEqual(['new']), pollTimes)
    await projector.stop()
  })
})

describe('both are lost', { timeout: 480_000 }, () => {
  let restored: ClickHouse
  let moved: Headers

  beforeAll(async () => {
    if (!requirement.isMet) return
    await query.stop()
    restored = await startClickHouse({ more })
    servers.push(restored)
    await onTables(restored, tables => tables.run({ query: `RESTORE ${backup} FROM ${file}` }))
    await restoreTopics(kafkaAt((await newKafka()).address), night)
    moved = {
      ...newest(),
      PLEDGEVIEW_CLICKHOUSE_URL: restored.url,
      PLEDGEVIEW_CLICKHOUSE_USER: restored.user,
      PLEDGEVIEW_CLICKHOUSE_PASSWORD: restored.password,
    }
    const { code, stderr } = await deployment.command(['migrate'], '', moved)
    expect(code, stderr).toBe(0)
  }, 240_000)

  test('the deletions since the copies are appended again before anyone reads, and none is undone', async () => {
    // Also if a mirror has copied the positions of the group: the tables have those of the lost Kafka.
    await copyPositions(kafkaAt(brokers.at(-1)?.address ?? ''), group)
    await append(`${deletions}${tombstone('api-key', revoked['X-API-Key'] ?? '')}`, moved)
    const projector = await startDrained(moved)
    expect((await seenCampaigns(restored)).map(({ id, title }) => [id, title])).toEqual([
      ['changed', 'Title of changed'],
      ['same', 'Title of same'],
    ])
    query = await deployment.startQuery(moved)
    // A key that was issued after both copies is lost, too: its owner needs a new one.
    expect(await statusesWith(query)).toEqual({ kept: 200, late: 401, revoked: 401 })

    await append(changes, moved)
    await untilDrained(projector)
    const after = await seenCampaigns(restored)
    const said = ({ id, title, backers }: SeenCampaign) => [id, title, backers]
    expect(after.map(said)).toEqual(before.map(said))
    await projector.stop()
  })
})

async function append(events: string, settings: Headers = {}): Promise<void> {
  const { code, stderr } = await deployment.command(['events', 'append', '-'], events, settings)
  expect(code, stderr).toBe(0)
}

/** A Kafka with nothing in it. The one before it is lost. */
async function newKafka(): Promise<KafkaBroker> {
  await brokers.at(-1)?.stop()
  const kafka = await startKafka(kafkaVersion)
  brokers.push(kafka)
  return kafka
}

/** The setting with which processes use the latest Kafka. */
function newest(): Headers {
  return { PLEDGEVIEW_KAFKA_BROKERS: brokers.at(-1)?.address ?? '' }
}

/** Fails if a reader sees anything but `before` at any moment of the work, or at its end. */
function unchangedWhile<T>(work: () => Promise<T>): Promise<T> {
  return sameWhile(servers[0] as ClickHouse, before, work)
}

async function recordsReadBy({ opsUrl }: ServiceProcess): Promise<number> {
  const { projector } = (await (await fetch(`${opsUrl}/status`)).json()) as { projector: { records: number } }
  return projector.records
}

async function startDrained(settings: Headers = {}): Promise<ServiceProcess> {
  const projector = await deployment.startProjector({ ...newest(), ...settings })
  await untilDrained(projector)
  return projector
}

/** The ids that a poller with this watermark (Unix ms) fetches, and its next watermark. */
async function poll({ apiUrl }: ServiceProcess, since: number): Promise<{ ids: string[]; next: number }> {
  // All answers to one question come from one snapshot for a minute. Some milliseconds later is another question.
  polls++
  const question = new URLSearchParams({ updated_since: new Date(since + polls).toISOString() })
  const response = await fetch(`${apiUrl}/projects?${question}`, { headers: kept })
  expect(response.status).toBe(200)
  const { data } = (await response.json()) as { data: { id: string }[] }
  return {
    ids: data.map(({ id }) => id).toSorted(),
    next: Date.parse(response.headers.get('x-data-as-of') ?? ''),
  }
}

/** Polls until the watermark has passed all that is visible, and returns it. */
async function watermarkPast(campaigns: readonly SeenCampaign[], process: ServiceProcess): Promise<number> {
  const latest = Math.max(
    ...campaigns.map(({ updated_at }) => Date.parse(`${updated_at.replace(' ', 'T')}Z`)),
  )
  let next = 0
  await vi.waitUntil(async () => {
    next = (await poll(process, Date.UTC(2026, 0, 1))).next
    return next > latest
  }, pollTimes)
  return next
}

async function statusesWith({ apiUrl }: ServiceProcess): Promise<Record<string, number>> {
  await untilAccepted(apiUrl, kept)
  const found = Object.entries({ kept, late, revoked }).map(async ([name, headers]) => [
    name,
    (await fetch(`${apiUrl}/projects?limit=1`, { headers })).status,
  ])
  return Object.fromEntries(await Promise.all(found))
}
