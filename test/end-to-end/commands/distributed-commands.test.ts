/** The operator's commands on the distributed form, as they are called: migrate, events, keys, status, rejects. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { schemas } from '../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import type { KafkaSettings } from '../../../services/log/kafka/client.ts'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'
import { lagRecords, type NewRecord } from '../../../services/log/port.ts'
import { createSchemaRegistry, registerSchemas } from '../../../services/log/registry/schema-registry.ts'
import { readProjection } from '../../../services/tables/projector-stops.ts'
import type { Deployment } from '../../support/deployment/deployment.ts'
import { useLocalDeployment } from '../../support/deployment/local-deployment.ts'
import type { LocalServices } from '../../support/deployment/local-services.ts'
import { onTables, seenCampaigns } from '../../support/deployment/seen-campaigns.ts'
import type { ServiceProcess } from '../../support/deployment/service-process.ts'
import { outputOf, type StatusOutput, whenFolded } from '../../support/deployment/status.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { appendRecords, kafkaAt, readTopic, withAdmin } from '../../support/kafka/topics.ts'
import { startFakeSchemaRegistry } from '../../support/servers/fake-schema-registry.ts'

const events = [
  campaignEvent({ campaign_id: 'c1', slug: 'lanterns', status: 'LIVE' }),
  ...[1, 2, 3].map(n => pledgeEvent({ campaign_id: 'c1', pledge_id: `p${n}`, backer_id: `b${n}` })),
]
const identity = ['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']

// Each look is a process. Only a hang takes this long, also on a busy machine.
const soon = { timeout: 90_000, interval: 500 }
vi.setConfig({ testTimeout: 300_000 })

describe('the commands on Kafka, ClickHouse and Redis', () => {
  let services: LocalServices
  let deployment: Deployment
  let projector: ServiceProcess | undefined
  let query: ServiceProcess

  const json = <T>(...args: string[]) => outputOf<T>(deployment, args)
  const append = (part: ChangeEvent[], ...args: string[]) =>
    deployment.command(['events', 'append', '-', ...args], `${part.map(formatEvent).join('\n')}\n`)
  const drained = () => whenFolded(deployment, soon)
  const ofQuery = async (path: string) => (await fetch(`${query.opsUrl}/${path}`)).text()

  useLocalDeployment({
    prepare: async local => {
      ;({ services, deployment } = local)
    },
  })

  test('status tells of records that wait while no projector runs', async () => {
    expect(await append(events)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^4 events/) })
    const { code, stdout } = await deployment.command(['status', '--json'])
    const { projector, tables, stopped }: StatusOutput = JSON.parse(stdout)
    expect(code).toBe(1)
    expect(stopped?.reason).toBe('no projector is in the consumer group, and none has folded yet.')
    expect(projector.members).toBe(0)
    expect(lagRecords(projector.lag)).toBe(4)
    expect(tables.public_campaigns).toBe(0)
  })

  test('status names Kafka and ClickHouse if they are away, or hang, and tells what the others know', async () => {
    const hanging = createServer(() => {}).listen(0, '127.0.0.1')
    await once(hanging, 'listening')
    const { port } = hanging.address() as AddressInfo
    const withoutTables = { PLEDGEVIEW_CLICKHOUSE_URL: 'http://127.0.0.1:1' }
    const withoutKafka = { PLEDGEVIEW_KAFKA_BROKERS: '127.0.0.1:1' }
    const away = {
      ...withoutKafka,
      PLEDGEVIEW_CLICKHOUSE_URL: `http://127.0.0.1:${port}`,
    }
    const [all, noKafka, noTables, printed] = await Promise.all([
      deployment.command(['status'], undefined, away),
      deployment.command(['status'], undefined, withoutKafka),
      deployment.command(['status'], undefined, withoutTables),
      deployment.command(['status', '--json'], undefined, withoutTables),
    ])
    hanging.close()
    expect([all, noKafka, noTables, printed].map(({ code }) => code)).toEqual([1, 1, 1, 1])
    expect(all.stdout).toMatch(/^kafka +does not answer: .*\(127\.0\.0\.1:1\)$/m)
    expect(all.stdout).toMatch(/^clickhouse +does not answer: no answer within/m)

    expect(noKafka.stdout).toMatch(/^kafka +does not answer: /m)
    expect(noKafka.stdout).toMatch(/^campaigns +0 public of 0 known$/m)
    expect(noKafka.stdout).toMatch(/^lag +log not known, /m)

    expect(noTables.stdout).toMatch(/^clickhouse +does not answer: .*ECONNREFUSED/m)
    // Nobody knows how far the projectors had come.
    expect(noTables.stdout).toMatch(/^pledges\/\d +ends at \d+$/m)
    const status = JSON.parse(printed.stdout)
    expect(lagRecords(status.projector.lag)).toBe(4)
    expect(status).toMatchObject({
      clickhouse: { ok: false, detail: expect.stringContaining('ECONNREFUSED') },
      fold: null,
      tables: null,
      rejects: null,
    })
  })

  test('status tells who projects and what the tables hold', async () => {
    // The first of each tells the tables its settings.
    ;[projector, query] = await Promise.all([deployment.startProjector(), deployment.startQuery()])
    expect(await drained()).toMatchObject({
      projector: { members: 1 },
      tables: { public_campaigns: 1, known_pledges: 3 },
      rejects: { total: 0 },
    })
    const { stdout } = await deployment.command(['status'])
    expect(stdout).toContain('campaigns     1 public of 1 known')
    expect(stdout).toContain('projectors    1')
  })

  test.each([
    [['projector'], 'PLEDGEVIEW_BACKER_KEY'],
    // The first key tells the tables its pepper.
    [['query'], 'PLEDGEVIEW_KEY_PEPPER'],
    [['keys', 'issue', ...identity], 'PLEDGEVIEW_KEY_PEPPER'],
  ])('%j refuses another %s than the tables began with, and names it', async (command, name) => {
    if (command[0] === 'query') await json('keys', 'issue', ...identity)
    const value = 'f'.repeat(64)
    const { code, stderr } = await deployment.command(command, undefined, { [name]: value })
    expect(code).toBe(1)
    expect(stderr).toContain(`${name} differs from the value that the tables in pledgeview began with`)
    expect(stderr).not.toContain(value)
  })

  test('a process that needs newer tables ends and names migrate, before it takes partitions or requests', async () => {
    await onTables(services.clickHouse, async ({ run }) => {
      await run({
        query: `CREATE OR REPLACE VIEW pledgeview_read_1.campaign_pages AS SELECT campaign_id, risks FROM pledgeview_read_1.campaigns FINAL`,
      })
      await run({
        query: 'ALTER TABLE pledgeview.migrations DELETE WHERE number = 1002 SETTINGS mutations_sync = 1',
      })
    })
    for (const command of ['projector', 'query']) {
      const { code, stderr } = await deployment.command([command])
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/are not up to date.*: run pledgeview migrate first/),
      ])
    }
    expect(await json('migrate')).toMatchObject({ applied: ['generation 1, 0002-batches.sql'] })
  })

  test('keys list needs neither Kafka nor the schema registry', async () => {
    const away = {
      PLEDGEVIEW_KAFKA_BROKERS: '127.0.0.1:1',
      PLEDGEVIEW_SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1',
    }
    const listed = await deployment.command(['keys', 'list', '--account', 'a'], undefined, away)
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^pv_live_\w+ {2}active/) })
  })

  test('migrate again finds nothing to do, and names what differs in a topic that is there', async () => {
    expect(await json('migrate')).toMatchObject({ applied: [], topics: [], warnings: [] })
    const longer = { PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS: String(30 * 86_400_000) }
    const warned = await deployment.command(['migrate'], undefined, longer)
    const warning = 'the topic campaigns keeps tombstones for 7 days'
    expect(warned).toMatchObject({ code: 0, stderr: expect.stringContaining(warning) })
    const other = await deployment.command(['migrate'], undefined, { PLEDGEVIEW_KAFKA_PARTITIONS: '5' })
    const stderr = expect.stringContaining('the topic campaigns has partitions 6 instead of 5')
    expect(other).toMatchObject({ code: 1, stderr })
  })

  test('rejects retry brings a schema that is registered by now into the read model, once, and no poison', async context => {
    const registry = await startFakeSchemaRegistry()
    context.onTestFinished(() => registry.close())
    await registerSchemas(createSchemaRegistry({ url: registry.url }), topic => topic)
    const withRegistry = { PLEDGEVIEW_SCHEMA_REGISTRY_URL: registry.url }
    const { kafka } = services.addresses
    const retry = async (...args: string[]) => {
      const all = ['rejects', 'retry', '--all-matching', '--json', ...args]
      const { code, stdout, stderr } = await deployment.command(all, undefined, withRegistry)
      return { code, stderr, outcome: JSON.parse(stdout) as { retried: number; outdated: number } }
    }
    const appendRaw = (...records: NewRecord[]) =>
      appendRecords(
        kafka,
        records.map(record => ({ ...record, headers: [['trace', Buffer.from('t-1')]] })),
      )
    const rejected = (reason: string, count: number) =>
      vi.waitFor(async () => {
        const { rejects } = await json<{ rejects: object[] }>('rejects', 'list', '--reason', reason)
        expect(rejects).toHaveLength(count)
      }, soon)

    const pledges = [1, 2].map(version =>
      recordUnder(77, pledgeEvent({ campaign_id: 'c1', pledge_id: 'late', version })),
    )
    await appendRaw(...pledges, {
      topic: 'pledges',
      key: Buffer.from('c1/p9'),
      value: Buffer.from('no event\n'),
    })
    await rejected('schema id 77 is unknown', 2)
    registry.put(77, { schema: JSON.stringify(schemas.pledge) })
    // This projector asks no registry, so it rejects the record again.
    expect(await retry('--reason', 'schema id 77')).toMatchObject({
      code: 1,
      outcome: {
        settled: 0,
        not_settled: 2,
      },
    })

    await projector?.stop()
    projector = await deployment.startProjector(withRegistry)
    await appendRaw(recordUnder(78, pledgeEvent({ campaign_id: 'c1', pledge_id: 'early' })))
    await rejected('78 is not in the schema registry', 1)
    // The projector still believes for a moment that there is no such schema. The retry waits for it.
    registry.put(78, { schema: JSON.stringify(schemas.pledge) })
    const { code, stderr, outcome } = await retry()
    expect(code, stderr).toBe(0)
    expect(outcome).toMatchObject({ matched: 5, no_event: 1, omitted: 0, settled: 4, not_settled: 0 })
    // Which of two versions is met first is up to their partitions.
    expect(outcome.retried + outcome.outdated).toBe(4)
    const { tables, rejects } = await drained()
    expect(tables.known_pledges).toBe(5)
    expect(rejects).toEqual({ total: 5, open: 1 })
    const late = (await readTopic(kafkaAt(kafka), 'pledges')).filter(({ key }) => String(key) === 'c1/late')
    expect(late.at(-1)?.value).toEqual(pledges[1]?.value)
    expect(late.at(-1)?.headers).toEqual([['trace', Buffer.from('t-1')]])
  })

  test('projectors that stop leave their reason to status, to other processes and to an alert, until one leads again', async () => {
    const both = [projector, await deployment.startProjector()].map(one => one?.child)
    const ended = both.map(child => new Promise(resolve => child?.once('exit', resolve)))
    await expect.poll(() => ofQuery('metrics'), soon).toContain('pledgeview_projectors_stopped 0')

    const value = Buffer.from('{"pledge_id":"p","backer_id":"ada@example.com"}')
    const bad = Array.from({ length: 400 }, (_, n) => ({ key: Buffer.from(`c1/bad${n}`), value }))
    await appendRecords(
      services.addresses.kafka,
      bad.map(record => ({ topic: 'pledges', ...record })),
    )
    expect(await Promise.all(ended)).toEqual([1, 1])

    const reason = /Too many of the recent records were rejected .*campaign_id is missing/
    const shown = await deployment.command(['status'])
    expect(shown.code).toBe(1)
    expect(shown.stdout).toMatch(/^projectors +0$/m)
    expect(shown.stdout).toMatch(
      new RegExp(`^stopped +at 2\\S+Z, because ${reason.source}.* Then start the projectors again`, 'm'),
    )
    const { code, stdout } = await deployment.command(['status', '--json'])
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 1,
      stopped: { reason: expect.stringMatching(reason) },
    })
    expect(JSON.parse(await ofQuery('status')).stopped.reason).toMatch(reason)
    await expect.poll(() => ofQuery('metrics'), soon).toContain('pledgeview_projectors_stopped 1')

    // One that was started after them, and could not begin, says what is wrong now.
    const unreached = {
      PLEDGEVIEW_KAFKA_BROKERS: '127.0.0.1:1',
      PLEDGEVIEW_KAFKA_SESSION_MS: '1000',
      PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX: '1500',
    }
    const said = /Kafka does not answer: .*127\.0\.0\.1:1/
    await expect(deployment.startProjector(unreached)).rejects.toThrow(said)
    expect(JSON.parse(await ofQuery('status')).stopped.reason).toMatch(said)

    // The next test kills it: the broker shall notice soon.
    const soonGone = { PLEDGEVIEW_KAFKA_SESSION_MS: '3000' }
    projector = await deployment.startProjector({ PLEDGEVIEW_REJECT_SHARE_MAX: '1', ...soonGone })
    // On a busy machine the broker believes it to be gone for a moment.
    await expect.poll(drained, soon).toMatchObject({ stopped: null })
    await expect.poll(() => ofQuery('metrics'), soon).toContain('pledgeview_projectors_stopped 0')
  })

  test('a projector that was killed leaves no reason, and still status, other processes and a metric say that none leads, and since when', async () => {
    const foldLag = async () =>
      Number(/stage_lag_seconds\{stage="fold"\} (\S+)/.exec(await ofQuery('metrics'))?.[1])
    const before = (await json<StatusOutput>('status')).lag.as_of
    projector?.child.kill('SIGKILL')

    await vi.waitFor(async () => {
      const { code, stdout } = await deployment.command(['status'])
      expect(code).toBe(1)
      expect(stdout).toMatch(
        /^projectors +0\n.*^stopped +at 2\S+Z, because no projector is in the consumer group, and none has left a reason/ms,
      )
    }, soon)
    // A process that asks no broker learns it from the watermark.
    const stopped = await onTables(services.addresses.clickHouse, async tables => {
      const read = () =>
        readProjection(
          tables,
          { base: 'pledgeview', views: 'crowdfunding' },
          { PLEDGEVIEW_KAFKA_SESSION_MS: -49_000 },
        )
      await expect.poll(async () => (await read()).stopped?.is_noted, soon).toBe(false)
      return (await read()).stopped
    })
    expect(stopped?.reason).toContain('no projector has led the fold since')
    expect(Date.parse(stopped?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(before))
    const standing = await foldLag()
    expect(standing).toBeGreaterThan(1)

    projector = await deployment.startProjector()
    expect(await drained()).toMatchObject({ stopped: null })
    await expect.poll(foldLag, soon).toBeLessThan(standing)
  })

  test('restored refuses while projectors run; then the log is read again with new stamps, without what it has deleted', async () => {
    const refused = await deployment.command(['restored'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('has 1 projectors: stop them') })
    const [before] = await seenCampaigns(services.addresses.clickHouse)
    await projector?.stop()

    // Records that the tables lack, and that the log then deletes.
    const lost = [1, 2, 3, 4].map(n => pledgeEvent({ campaign_id: 'c1', pledge_id: `lost${n}` }))
    expect(await append(lost)).toMatchObject({ code: 0 })
    await deletePledgesOf(kafkaAt(services.addresses.kafka))
    await expect(deployment.startProjector()).rejects.toThrow(/are deleted.*pledgeview restored/s)

    const { positions } = await json<{ positions: { place: string; from: number }[] }>('restored')
    expect(positions).toHaveLength(5 * 6)
    for (const { place, from } of positions) if (place.startsWith('campaigns/')) expect(from, place).toBe(0)
    projector = await deployment.startProjector()
    await drained()
    await vi.waitFor(async () => {
      const [after] = await seenCampaigns(services.addresses.clickHouse)
      expect(after).toEqual({ ...before, updated_at: expect.any(String) })
      expect(String(after?.updated_at) > String(before?.updated_at)).toBe(true)
    }, soon)
  })

  test('a query process tells that ClickHouse is away: the projectors end then, and tell nothing', async () => {
    await expect.poll(() => ofQuery('metrics'), soon).toContain('pledgeview_clickhouse_up 1')
    await services.clickHouse.kill()
    await expect.poll(() => ofQuery('metrics'), soon).toContain('pledgeview_clickhouse_up 0')
  })
})

/** Deletes all records of the topic of pledges, which it only does with a retention. */
async function deletePledgesOf(settings: KafkaSettings): Promise<void> {
  const topic = 'pledges'
  await withAdmin(settings, async admin => {
    const type = loadKafkajs().ConfigResourceTypes.TOPIC
    const configEntries = [{ name: 'cleanup.policy', value: 'compact,delete' }]
    await admin.alterConfigs({ validateOnly: false, resources: [{ type, name: topic, configEntries }] })
    const ends = await admin.fetchTopicOffsets(topic)
    const partitions = ends.map(({ partition, high }) => ({ partition, offset: high }))
    await admin.deleteTopicRecords({ topic, partitions })
  })
}

/** The event as a producer frames it whose schema has this id. */
function recordUnder(schemaId: number, event: ChangeEvent): NewRecord {
  const record = newRecordOf(event)
  const value = Buffer.from(record.value ?? [])
  value.writeUInt32BE(schemaId, 1)
  return { ...record, value }
}
