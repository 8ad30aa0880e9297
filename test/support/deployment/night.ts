/**
 * A deployment that lost something this morning: last night its tables were backed up and its topics copied, and it went on. What was
 * deleted, hidden or revoked since then must stay so, whatever is restored (deploy/restore.md).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, vi } from 'vitest'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { readGuide } from '../../guides/blocks.ts'
import { type ClickHouse, startClickHouse } from '../clickhouse/clickhouse.ts'
import { issueCredentials, untilAccepted, untilDrained, untilLeads } from '../events/kickstarter.ts'
import { campaignEvent, pledgeEvent } from '../events/sample-events.ts'
import { type KafkaBroker, startKafka } from '../kafka/broker.ts'
import { kafkaRequirement, newestKafka } from '../kafka/jars.ts'
import { copyTopics, type TopicCopy } from '../kafka/topic-copy.ts'
import { kafkaAt } from '../kafka/topics.ts'
import { needs, type Requirement } from '../runner/requirements.ts'
import { type Deployment, deploy } from './deployment.ts'
import { onTables, type SeenCampaign, seenCampaigns } from './seen-campaigns.ts'
import type { ServiceProcess } from './service-process.ts'

export type Headers = Readonly<Record<string, string>>

// The statement of the guide.
const [statement = '', backup = '', disk = ''] =
  /^BACKUP (.*) TO (Disk\('backups', '.*'\))$/m.exec(readGuide('deploy/restore.md')) ?? []
// Only a hang takes this long. A key has 120 requests a minute.
export const pollTimes = { timeout: 240_000, interval: 1_000 }
const nightMsMax = 480_000

export const tombstone = (type: string, key: string) => `${JSON.stringify({ type, key, data: null })}\n`
export const lines = (...events: Parameters<typeof formatEvent>[0][]) =>
  events.map(event => `${formatEvent(event)}\n`).join('')
const history = [
  lines(
    ...['same', 'pledged', 'changed', 'deleted', 'hidden', 'gone'].map(id =>
      campaignEvent({ campaign_id: id }),
    ),
  ),
  lines(...['p', 'q'].map(pledge_id => pledgeEvent({ campaign_id: 'pledged', pledge_id }))),
  // Compaction leaves only the last state of a campaign: a copy has fewer records, so other offsets.
  ...Array.from({ length: 20 }, (_, version) =>
    lines(campaignEvent({ campaign_id: 'gone', version: version + 2 })),
  ),
  tombstone('campaign', 'gone'),
  lines(campaignEvent({ campaign_id: 'before-copy' })),
].join('')
/** Between the backup of ClickHouse and the copy of Kafka. */
const deletedBeforeCopy = tombstone('campaign', 'before-copy')
export const deletions = [
  tombstone('campaign', 'deleted'),
  tombstone('pledge', 'pledged/q'),
  lines(campaignEvent({ campaign_id: 'hidden', version: 2, status: 'SUSPENDED' })),
].join('')
export const changes = lines(
  campaignEvent({ campaign_id: 'changed', version: 2, title: 'Changed after the copy' }),
  campaignEvent({ campaign_id: 'new' }),
)

/** Lets the suite begin this morning: no projector runs, and one query process, on the tables of yesterday. */
export function useNight() {
  const backups = mkdtempSync(join(tmpdir(), 'pledgeview-backups-'))
  const more = {
    storage_configuration: { disks: { backups: { type: 'local', path: `${backups}/` } } },
    backups: { allowed_disk: 'backups', allow_concurrent_backups: 'false' },
  }
  const brokers: KafkaBroker[] = []
  const servers: ClickHouse[] = []
  let requirement: Requirement
  let deployment: Deployment
  let polls = 0
  const known = {} as {
    query: ServiceProcess
    copy: TopicCopy[]
    /** Keys: issued before the copy, revoked after it, and issued after it. */
    keys: Record<'kept' | 'revoked' | 'late', Record<string, string>>
    /** What readers saw last, and the watermark of a poller that had it all (Unix ms). */
    before: SeenCampaign[]
    watermark: number
  }

  beforeAll(async () => {
    requirement = await kafkaRequirement(newestKafka)
    if (!requirement.isMet) return
    const [kafka, clickHouse] = await Promise.all([startKafka(newestKafka), startClickHouse({ more })])
    brokers.push(kafka)
    servers.push(clickHouse)
    deployment = await deploy({ kafka: kafka.address, clickHouse }, { PLEDGEVIEW_KAFKA_PARTITIONS: '2' })
    const projector = await deployment.startProjector()
    await Promise.all([untilLeads(projector), night.append(history)])
    const [kept, revoked, query] = await Promise.all([
      issueCredentials(deployment.command, 'kept'),
      issueCredentials(deployment.command, 'revoked'),
      deployment.startQuery(),
    ])
    // The backup has to have the generation that is current by now, whatever its number.
    expect(await deployment.command(['rebuild'])).toMatchObject({ code: 0 })
    await untilDrained(projector)
    await onTables(clickHouse, async tables => {
      // Everything so far was read longer ago than the margin of a restore.
      for (const [table, column] of Object.entries({ batch_log: 'appended_at', positions: 'written_at' }))
        await tables.run({
          query: `ALTER TABLE pledgeview_ledger_2.${table} UPDATE ${column} = ${column} - INTERVAL 2 DAY
                  WHERE 1 SETTINGS mutations_sync = 2`,
        })
      await tables.run({ query: statement })
    })
    await night.append(deletedBeforeCopy)
    await untilDrained(projector)
    const copy = await copyTopics(kafkaAt(kafka.address))

    const [late, { code, stderr }] = await Promise.all([
      issueCredentials(deployment.command, 'late'),
      deployment.command(['keys', 'revoke', revoked['X-API-Key'] ?? '']),
      night.append(`${deletions}${changes}`),
    ])
    expect(code, stderr).toBe(0)
    await untilDrained(projector)
    await untilAccepted(query.apiUrl, late)
    const before = await seenCampaigns(clickHouse)
    Object.assign(known, { query, copy, keys: { kept, revoked, late }, before })
    known.watermark = await watermarkPast(before)
    // The backup is of last night: the watermark that is remembered is past it. The leader remembers one with the next one.
    for (let step = 0; step < 3; step++) {
      const last = await onTables(clickHouse, asOf)
      await vi.waitFor(async () => expect(await onTables(clickHouse, asOf)).not.toBe(last), pollTimes)
    }
    await projector.stop()
  }, nightMsMax)

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await deployment?.stop()
    await Promise.all([...servers, ...brokers].map(service => service.stop()))
    rmSync(backups, { recursive: true, force: true })
  })

  /** Polls until the watermark has passed all that is visible, and returns it. */
  async function watermarkPast(campaigns: readonly SeenCampaign[]): Promise<number> {
    const times = campaigns.map(({ updated_at }) => Date.parse(`${updated_at.replace(' ', 'T')}Z`))
    return vi.waitUntil(async () => {
      const { next } = await night.poll(Date.UTC(2026, 0, 1))
      return next > Math.max(...times) && next
    }, pollTimes)
  }

  const night = {
    known,
    isMet: () => requirement.isMet,
    deployment: () => deployment,
    /** The server of yesterday. */
    server: () => servers[0] as ClickHouse,
    kafka: () => kafkaAt(brokers.at(-1)?.address ?? ''),

    /** A Kafka with nothing in it. The one before it is lost. */
    async newKafka(): Promise<void> {
      await brokers.at(-1)?.stop()
      brokers.push(await startKafka(newestKafka))
    },

    /** Tables on a new server: those of the backup, or new ones. Returns it, and the settings of processes that use it. */
    async newTables(from: 'the backup' | 'nothing'): Promise<{ server: ClickHouse; settings: Headers }> {
      const server = await startClickHouse({ more })
      servers.push(server)
      if (from === 'the backup')
        await onTables(server, tables => tables.run({ query: `RESTORE ${backup} FROM ${disk}` }))
      const settings = {
        ...night.newest(),
        PLEDGEVIEW_CLICKHOUSE_URL: server.url,
        PLEDGEVIEW_CLICKHOUSE_USER: server.user,
        PLEDGEVIEW_CLICKHOUSE_PASSWORD: server.password,
      }
      const { code, stderr } = await deployment.command(['migrate'], '', settings)
      expect(code, stderr).toBe(0)
      return { server, settings }
    },

    /** The setting with which processes use the latest Kafka. */
    newest: (): Headers => ({ PLEDGEVIEW_KAFKA_BROKERS: brokers.at(-1)?.address ?? '' }),

    async append(events: string, settings: Headers = night.newest()): Promise<void> {
      const { code, stderr } = await deployment.command(['events', 'append', '-'], events, settings)
      expect(code, stderr).toBe(0)
    },

    async startDrained(settings: Headers = {}): Promise<ServiceProcess> {
      const projector = await deployment.startProjector({ ...night.newest(), ...settings })
      await untilDrained(projector)
      return projector
    },

    /** The ids that a poller with this watermark (Unix ms) fetches, and its next watermark. */
    async poll(since = known.watermark): Promise<{ ids: string[]; next: number }> {
      // All answers to one question come from one snapshot for a minute. Some milliseconds later is another question.
      polls++
      const question = new URLSearchParams({ updated_since: new Date(since + polls).toISOString() })
      const response = await fetch(`${known.query.apiUrl}/projects?${question}`, { headers: known.keys.kept })
      expect(response.status).toBe(200)
      const { data } = (await response.json()) as { data: { id: string }[] }
      const next = Date.parse(response.headers.get('x-data-as-of') ?? '')
      return { ids: data.map(({ id }) => id).toSorted(), next }
    },

    /** By key: what the process answers to it. */
    async statusesOf({ apiUrl }: ServiceProcess): Promise<Record<string, number>> {
      await untilAccepted(apiUrl, known.keys.kept)
      const found = Object.entries(known.keys).map(async ([name, headers]) => [
        name,
        (await fetch(`${apiUrl}/projects?limit=1`, { headers })).status,
      ])
      return Object.fromEntries(await Promise.all(found))
    },
  }
  return night
}

/** The watermark of these tables. */
export async function asOf(tables: Tables): Promise<string> {
  const [about] = await tables.rows<{ as_of: string }>({
    query: 'SELECT toString(as_of) AS as_of FROM crowdfunding.about',
  })
  return about?.as_of ?? ''
}
