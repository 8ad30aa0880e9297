/**
 * An erasure request on the distributed form, end to end: after the deletion events and `purge`, the texts of a creator and a
 * backer are in no Kafka topic, ClickHouse file or table, Redis key or log line, at the latest when `purge` says.
 */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { openKafkaWriter } from '../../services/log/kafka/writer.ts'
import { openTables } from '../../services/tables/clickhouse.ts'
import { settingsFor } from '../support/clickhouse/clickhouse.ts'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import type { LocalServices } from '../support/deployment/local-services.ts'
import type { ServiceProcess } from '../support/deployment/service-process.ts'
import { accountRecord } from '../support/events/accounts.ts'
import { filesWith, tablesWith, tablesWithOldParts } from '../support/events/find-texts.ts'
import { untilLeads } from '../support/events/kickstarter.ts'
import {
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
} from '../support/events/sample-events.ts'
import { kcat, kcatProgram } from '../support/kafka/kcat.ts'
import { silent } from '../support/kafka/topics.ts'

// A busy machine is no failure.
const soon = { timeout: 60_000, interval: 250 }
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })
const compactionMs = 1_000
const settings = {
  PLEDGEVIEW_KAFKA_PARTITIONS: '1',
  PLEDGEVIEW_KAFKA_COMPACTION_LAG_MS: String(compactionMs),
  PLEDGEVIEW_CACHE_MS: '3000',
  PLEDGEVIEW_STATS_CACHE_MS: '3000',
  PLEDGEVIEW_LOG_LEVEL: 'debug',
}
const identity = ['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']
const topics = ['campaigns', 'pledges', 'api-keys', 'accounts', 'notices']

const personal = (what: string) => `${what}-${randomBytes(24).toString('hex')}`
const [creatorId, name, description, backer, inReject, mailbox] = [
  personal('creator'),
  personal('name'),
  personal('description'),
  personal('backer'),
  personal('reject'),
  personal('mailbox'),
] as const
const texts = [creatorId, name, description, backer, inReject, mailbox]
const creator = {
  creator_id: creatorId,
  name,
  profile_url: 'https://crowdfunding.example/x',
  avatar_url: null,
}

interface PurgeOutput {
  is_complete: boolean
  copies: { copy: string; done: string; left: string | null; until: string | null }[]
}

describe('an erasure request, distributed', () => {
  let services: LocalServices
  let deployment: Deployment
  let processes: ServiceProcess[] = []
  let credentials: { key: string; secret: string }

  useLocalDeployment({
    also: kcatProgram,
    settings,
    prepare: async local => {
      ;({ services, deployment } = local)
      const projector = await deployment.startProjector()
      processes = [projector, await deployment.startQuery()]
      await untilLeads(projector)
      credentials = JSON.parse((await deployment.command(['keys', 'issue', ...identity, '--json'])).stdout)
    },
  })

  const address = () => services.addresses.kafka

  async function append(...events: ChangeEvent[]): Promise<void> {
    const { code, stderr } = await deployment.command(
      ['events', 'append', '-'],
      `${events.map(formatEvent).join('\n')}\n`,
    )
    expect(code, stderr).toBe(0)
  }

  async function purge(...args: string[]): Promise<PurgeOutput> {
    const { code, stdout, stderr } = await deployment.command(['purge', '--json', ...args])
    expect(code, `${stderr}${stdout}`).toBe(0)
    return JSON.parse(stdout) as PurgeOutput
  }

  async function detail(slug: string): Promise<{ status: number; body: string }> {
    const headers = { 'x-api-key': credentials.key, 'x-api-secret': credentials.secret }
    const response = await fetch(`${processes[1]?.apiUrl}/projects/${slug}`, { headers })
    return { status: response.status, body: await response.text() }
  }

  async function appendAccount(id: string, email: string): Promise<void> {
    const kafka = { brokers: [address()], clientId: 'pledgeview-test', topicPrefix: '' }
    const writer = await openKafkaWriter(kafka, { logger: silent })
    await writer.append([accountRecord(id, email)])
    await writer.close()
  }

  /** The topics that still have a record with one of the texts in its key, value or headers. */
  async function topicsWith(): Promise<string[]> {
    const found: string[] = []
    for (const topic of topics) {
      const read = await kcat([
        '-b',
        address(),
        '-C',
        '-e',
        '-q',
        '-o',
        'beginning',
        '-t',
        topic,
        '-f',
        '%k %s %h\n',
      ])
      if (texts.some(text => read.includes(text))) found.push(topic)
    }
    return found
  }

  /** The keys of Redis whose name or value has one of the texts. DUMP would compress the values. */
  async function redisKeysWith(): Promise<string[]> {
    const { client } = services.redis
    const found: string[] = []
    for (const key of await client.keys('*')) {
      const type = await client.type(key)
      const values =
        type === 'hash'
          ? Object.values(await client.hgetallBuffer(key))
          : type === 'string'
            ? [await client.getBuffer(key)]
            : []
      const all = [Buffer.from(key), ...values]
      if (texts.some(text => all.some(value => value?.includes(text)))) found.push(key)
    }
    return found
  }

  test('begins where the texts are in the topics, the tables, the rejects and the caches', async () => {
    await append(
      campaignEvent({ campaign_id: 'gone', creator, description }),
      campaignEvent({ campaign_id: 'kept', creator }),
      pledgeEvent({ campaign_id: 'gone', pledge_id: 'p1', backer_id: backer }),
      pledgeEvent({ campaign_id: 'kept', pledge_id: 'p2', backer_id: backer }),
    )
    await kcat(
      ['-b', address(), '-P', '-t', 'pledges', '-p', '0', '-k', 'kept/p3'],
      `not an event, by ${inReject}\n`,
    )
    await appendAccount('acct_gone', `${mailbox}@one.example`)
    await vi.waitFor(async () => expect((await detail('slug-gone')).body).toContain(description), soon)
    await vi.waitFor(
      async () => expect(await topicsWith()).toEqual(['campaigns', 'pledges', 'accounts']),
      soon,
    )
    // A merge replaces files while they are read.
    await vi.waitFor(() => expect(filesWith(services.clickHouse.directory, [name])).not.toEqual([]), soon)
    await vi.waitFor(async () => {
      await detail('slug-kept')
      expect(await redisKeysWith()).not.toEqual([])
    }, soon)
  })

  test('is met by the events and a purge, at the latest when it says', async () => {
    await append(
      campaignTombstone('gone'),
      pledgeTombstone('gone', 'p1'),
      pledgeTombstone('kept', 'p2'),
      pledgeTombstone('kept', 'p3'),
      campaignEvent({
        campaign_id: 'kept',
        version: 2,
        creator: { ...creator, creator_id: 'x', name: 'Deleted' },
      }),
    )
    await appendAccount('acct_gone', '')
    const { clickHouse } = services
    const tables = openTables(settingsFor(clickHouse))
    await vi.waitFor(
      async () =>
        expect((await purge('--dry-run')).copies).toContainEqual(
          expect.objectContaining({ copy: 'table rejects', done: 'removes 1 row', left: null }),
        ),
      soon,
    )
    expect(await tablesWith(tables, [inReject])).not.toEqual([])

    const { copies, is_complete } = await purge()
    expect(is_complete).toBe(true)
    expect(copies).toContainEqual(
      expect.objectContaining({ copy: 'table rejects', done: 'removed 1 row', left: null }),
    )
    expect(await tablesWith(tables, texts)).toEqual([])
    expect(await tablesWithOldParts(tables)).toEqual([])
    await tables.close()
    expect(filesWith(clickHouse.directory, texts)).toEqual([])

    // What is left says until when; the topics also need one more event in each partition.
    const until = copies.flatMap(copy => (copy.until === null ? [] : [Date.parse(copy.until)]))
    expect(copies.filter(copy => copy.left !== null && copy.until === null)).toEqual([])
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(Math.max(...until)), soon)
    await append(campaignEvent({ campaign_id: 'next' }), pledgeEvent({ campaign_id: 'next', pledge_id: 'p' }))
    // Nobody signs up, so a second purge appends what the accounts need, as the first one has said.
    await purge()
    await vi.waitFor(async () => expect(await topicsWith()).toEqual([]), soon)
    expect(await redisKeysWith()).toEqual([])
    for (const started of processes) for (const text of texts) expect(started.output()).not.toContain(text)
    expect((await detail('slug-gone')).status).toBe(404)
    expect((await detail('slug-kept')).body).toContain('Deleted')
  })
})
