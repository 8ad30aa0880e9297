/**
 * The operator's commands on a cluster of two shards: migrate, explain, status and purge. What concerns both shards is done on both, and a
 * command that cannot reach both says so. A rebuild of shards is in test/integration/generations/shards.
 *
 * An erasure request, end to end: after the deletion events and `purge`, the texts of a creator and a backer are in no Kafka topic, in
 * no file or table of either shard, in no Redis key and in no log line, at the latest when `purge` says.
 */
import { readdirSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import type { ShardServers } from '../../support/clickhouse/shards.ts'
import type { Deployment } from '../../support/deployment/deployment.ts'
import { useLocalDeployment } from '../../support/deployment/local-deployment.ts'
import type { LocalServices } from '../../support/deployment/local-services.ts'
import { makeDataDirectory, type ServiceProcess } from '../../support/deployment/service-process.ts'
import { outputOf, whenFolded } from '../../support/deployment/status.ts'
import { accountRecord } from '../../support/events/accounts.ts'
import { filesWith, personalText, tablesWith, tablesWithOldParts } from '../../support/events/find-texts.ts'
import { issueCredentials, untilLeads } from '../../support/events/kickstarter.ts'
import {
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
} from '../../support/events/sample-events.ts'
import { appendRecords, kafkaAt, readTopic } from '../../support/kafka/topics.ts'

// A busy machine is no failure.
const soon = { timeout: 180_000, interval: 250 }
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 })
const compactionMs = 1_000
const copies = makeDataDirectory()
const settings = {
  PLEDGEVIEW_KAFKA_PARTITIONS: '1',
  PLEDGEVIEW_KAFKA_COMPACTION_LAG_MS: String(compactionMs),
  PLEDGEVIEW_CACHE_MS: '3000',
  PLEDGEVIEW_STATS_CACHE_MS: '3000',
  PLEDGEVIEW_LOG_LEVEL: 'debug',
  PLEDGEVIEW_EXPORT_DIR: copies.path,
}
const topics = ['campaigns', 'pledges', 'api-keys', 'accounts', 'notices']

const [creatorId, name, description, backer, inReject, mailbox] = [
  personalText('creator'),
  personalText('name'),
  personalText('description'),
  personalText('backer'),
  personalText('reject'),
  personalText('mailbox'),
] as const
const texts = [creatorId, name, description, backer, inReject, mailbox]
const creator = {
  creator_id: creatorId,
  name,
  profile_url: 'https://crowdfunding.example/x',
  avatar_url: null,
}

// On both shards.
const gone = Array.from({ length: 6 }, (_, n) => `gone${n}`)

interface PurgeOutput {
  is_complete: boolean
  copies: { copy: string; done: string; left: string | null; until: string | null }[]
}

describe('the commands on two shards', () => {
  afterAll(() => copies.remove())
  let services: LocalServices
  let shards: ShardServers
  let deployment: Deployment
  let processes: ServiceProcess[] = []
  let headers: Record<string, string>

  useLocalDeployment({
    shards: 2,
    settings,
    prepare: async local => {
      ;({ services, deployment } = local)
      shards = services.shards as ShardServers
      const projector = await deployment.startProjector()
      processes = [projector, await deployment.startQuery()]
      await untilLeads(projector)
      headers = await issueCredentials(deployment.command, 'a')
      await append(
        ...gone.map(id => campaignEvent({ campaign_id: id, creator, description })),
        ...gone.map(id => pledgeEvent({ campaign_id: id, pledge_id: 'p1', backer_id: backer })),
        campaignEvent({ campaign_id: 'kept', creator }),
        pledgeEvent({ campaign_id: 'kept', pledge_id: 'p2', backer_id: backer }),
      )
    },
  })

  const address = () => services.addresses.kafka
  const json = <T>(...args: string[]) => outputOf<T>(deployment, args)

  /** The campaigns of each shard. */
  async function ofShards(): Promise<string[][]> {
    return Promise.all(
      shards.shards.map(async ({ tables, databases }) => {
        const rows = await tables.rows<{ id: string }>({
          query: `SELECT campaign_id AS id FROM ${databases.ledger}.campaign_ledger FINAL ORDER BY id`,
        })
        return rows.map(({ id }) => id)
      }),
    )
  }

  async function expectNoTexts(purgedAt: number): Promise<void> {
    for (const [index, { tables }] of shards.shards.entries()) {
      expect(await tablesWith(tables, texts)).toEqual([])
      expect(await tablesWithOldParts(tables, purgedAt)).toEqual([])
      expect(filesWith(shards.servers[index]?.directory ?? '', texts)).toEqual([])
    }
  }

  async function append(...events: ChangeEvent[]): Promise<void> {
    const { code, stderr } = await deployment.command(
      ['events', 'append', '-'],
      `${events.map(formatEvent).join('\n')}\n`,
    )
    expect(code, stderr).toBe(0)
  }

  async function detail(slug: string): Promise<{ status: number; body: string }> {
    const response = await fetch(`${processes[1]?.apiUrl}/projects/${slug}`, { headers })
    return { status: response.status, body: await response.text() }
  }

  /** The topics that still have a record with one of the texts in its key, value or headers. */
  async function topicsWith(): Promise<string[]> {
    const found: string[] = []
    for (const topic of topics) {
      for (const { key, value, headers } of await readTopic(kafkaAt(address()), topic)) {
        const all = [key, value, ...headers.flat()].map(String)
        if (!found.includes(topic) && texts.some(text => all.some(one => one.includes(text))))
          found.push(topic)
      }
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

  test('migrate runs again on all shards, and names one that does not answer', async () => {
    expect(await outputOf(deployment, ['migrate'])).toMatchObject({ applied: [] })
    const [near = ''] = shards.servers.map(({ url }) => url)
    const away = { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: `${near},http://127.0.0.1:1` }
    const { code, stderr } = await deployment.command(['migrate'], undefined, away)
    expect(code).toBe(1)
    expect(stderr).toContain('no answer from ClickHouse at 127.0.0.1:1: ECONNREFUSED')
  })

  test('status counts what all shards have, and explain finds a campaign on the shard that has it', async () => {
    const { tables } = await whenFolded(deployment, soon)
    const all = gone.length + 1
    expect(tables).toMatchObject({ public_campaigns: all, known_pledges: all })
    const held = await ofShards()
    expect(held.flat().toSorted()).toEqual([...gone, 'kept'])
    expect(held).toHaveLength(2)
    for (const [id = ''] of held) {
      expect(await json('explain', `slug-${id}`)).toMatchObject({
        campaign_id: id,
        shown: { pledges: 1 },
        why: ['What is shown is what the ledger says.'],
      })
    }
  })

  test('export writes a copy of what both shards have, and the query service offers it', async () => {
    await whenFolded(deployment, soon)
    const { campaigns } = await json<{ campaigns: number }>('export', copies.path)
    expect(campaigns).toBe(gone.length + 1)
    const lines = await fetch(`${processes[1]?.apiUrl}/exports/latest/campaigns.ndjson.gz`, { headers })
    const text = gunzipSync(await lines.bytes()).toString()
    for (const id of gone) expect(text).toContain(`"id":"${id}"`)
  })

  test('with one URL for two shards, a command that works on each shard refuses, and says why', async () => {
    const [url = ''] = (shards.environment.PLEDGEVIEW_CLICKHOUSE_SHARD_URLS ?? '').split(',')
    const wrong = { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: url }
    for (const args of [['status'], ['purge', '--dry-run'], ['projector']]) {
      const { code, stdout, stderr } = await deployment.command(args, undefined, wrong)
      expect({ args, code }).toEqual({ args, code: 1 })
      expect(stdout + stderr, args[0]).toContain('has 2 shards, and 1 URLs are given')
    }
  })

  test('an erasure request begins where the texts are in the topics, both shards, the rejects and the caches', async () => {
    const value = Buffer.from(`not an event, by ${inReject}`)
    // The accounts are on the first shard, and rejects where their keys lead.
    await appendRecords(address(), [
      { topic: 'pledges', key: Buffer.from('kept/p3'), value },
      { topic: 'accounts', key: Buffer.from('acct_gone'), value },
    ])
    await appendRecords(address(), [accountRecord('acct_gone', `${mailbox}@one.example`)])
    await vi.waitFor(async () => expect((await detail('slug-gone0')).body).toContain(description), soon)
    await expect.poll(topicsWith, soon).toEqual(['campaigns', 'pledges', 'accounts'])
    // A merge replaces files while they are read.
    for (const { directory } of shards.servers)
      await vi.waitFor(() => expect(filesWith(directory, texts)).not.toEqual([]), soon)
    await vi.waitFor(async () => {
      await detail('slug-kept')
      expect(await redisKeysWith()).not.toEqual([])
    }, soon)
  })

  test('it is met by the events and a purge, on both shards, at the latest when the purge says', async () => {
    await append(
      ...gone.flatMap(id => [campaignTombstone(id), pledgeTombstone(id, 'p1')]),
      pledgeTombstone('kept', 'p2'),
      pledgeTombstone('kept', 'p3'),
      campaignEvent({
        campaign_id: 'kept',
        version: 2,
        creator: { ...creator, creator_id: 'x', name: 'Deleted' },
      }),
    )
    await appendRecords(address(), [accountRecord('acct_gone', '')])
    await whenFolded(deployment, soon)
    const planned = (await json<PurgeOutput>('purge', '--dry-run')).copies
    expect(ofRejects(planned)).toEqual([
      ['removes 1 row', null],
      ['removes 1 row', null],
    ])
    const purgedAt = Date.now()
    const { copies: purged, is_complete } = await json<PurgeOutput>('purge')
    expect(is_complete).toBe(true)
    expect(ofRejects(purged)).toEqual([
      ['removed 1 row', null],
      ['removed 1 row', null],
    ])
    const named = purged.map(({ copy }) => copy)
    for (const shard of [1, 2])
      for (const table of ['campaigns', 'campaign_ledger', 'pledge_ledger'])
        expect(named).toContain(`shard ${shard}, table ${table}`)
    await expectNoTexts(purgedAt)
    expect(named).toContain('whole copies')
    expect(readdirSync(copies.path)).toEqual(['lock.sqlite'])

    // What is left says until when; the topics also need one more event in each partition.
    const until = purged.flatMap(copy => (copy.until === null ? [] : [Date.parse(copy.until)]))
    expect(purged.filter(copy => copy.left !== null && copy.until === null)).toEqual([])
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(Math.max(...until)), soon)
    await append(campaignEvent({ campaign_id: 'next' }), pledgeEvent({ campaign_id: 'next', pledge_id: 'p' }))
    // Nobody signs up, so a second purge appends what the accounts need, as the first one has said.
    await json('purge')
    await expect.poll(topicsWith, soon).toEqual([])
    expect(await redisKeysWith()).toEqual([])
    for (const started of processes) for (const text of texts) expect(started.output()).not.toContain(text)
    expect((await detail('slug-gone0')).status).toBe(404)
    expect((await detail('slug-kept')).body).toContain('Deleted')
  })
})

/** What was done with the rejects of each shard, and what is left. */
function ofRejects(copies: PurgeOutput['copies']): unknown[][] {
  const found = copies.filter(({ copy }) => copy.endsWith(', table rejects'))
  return found.map(({ done, left }) => [done, left]).toSorted()
}
