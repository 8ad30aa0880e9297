/**
 * `pledgeview rebuild` on Kafka and a ClickHouse server, as a process beside a projector: also as the way on for projectors that
 * were away for longer than Kafka keeps tombstones. What a rebuild itself promises is in test/integration/generations.
 */
import { describe, expect, test, vi } from 'vitest'
import { topics } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { loadKafkajs } from '../../services/log/kafka/repairs/library.ts'
import { openKafkaWriter } from '../../services/log/kafka/writer.ts'
import { openTables } from '../../services/tables/clickhouse.ts'
import { settingsFor } from '../support/clickhouse.ts'
import type { Deployment } from '../support/deployment.ts'
import { outputOf, whenFolded } from '../support/deployment-status.ts'
import { silent, withAdmin } from '../support/kafka/topics.ts'
import { useLocalDeployment } from '../support/local-deployment.ts'
import { linesOf, resultOf, smallPlatform } from '../support/rebuild-service.ts'
import { campaignEvent, noEvent } from '../support/sample-events.ts'
import type { ServiceProcess } from '../support/service-process.ts'
import type { LocalServices } from '../support/local-services.ts'

const badRecords = 19
const dayMs = 86_400_000
// Each look is a process. Only a hang takes this long, also on a busy machine.
const soon = { timeout: 120_000, interval: 200 }
vi.setConfig({ testTimeout: 300_000 })

describe('a rebuild on Kafka and ClickHouse', () => {
  let services: LocalServices
  let deployment: Deployment
  let projector: ServiceProcess
  const kafka = () => ({ brokers: [services.addresses.kafka], clientId: 'test', topicPrefix: '' })

  const rebuild = (args: string[], settings: Readonly<Record<string, string>> = {}) =>
    deployment.command(['rebuild', ...args], undefined, settings)

  async function append(...events: Parameters<typeof formatEvent>[0][]): Promise<void> {
    const lines = events.map(event => `${formatEvent(event)}\n`).join('')
    expect((await deployment.command(['events', 'append', '-'], lines)).code).toBe(0)
  }

  useLocalDeployment({
    prepare: async local => {
      ;({ services, deployment } = local)
      await keepTombstonesForADay()
      await append(...smallPlatform())
      await appendBad()
      projector = await deployment.startProjector()
      expect(await whenFolded(deployment, soon)).toMatchObject({
        tables: { public_campaigns: 40 },
        rejects: { total: badRecords },
      })
    },
  })

  test('is refused with another backer key than the tables began with, on a server without shards, and before migrate', async () => {
    const other = await rebuild([], { PLEDGEVIEW_BACKER_KEY: 'f'.repeat(64) })
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('PLEDGEVIEW_BACKER_KEY differs') })
    const cluster = await rebuild([], {
      PLEDGEVIEW_CLICKHOUSE_CLUSTER: 'c',
      PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: services.addresses.clickHouse.url,
    })
    expect(cluster).toMatchObject({ code: 1, stderr: expect.stringContaining('shard') })
    const bare = await rebuild(['status'], { PLEDGEVIEW_DATABASE: 'bare' })
    expect(bare).toMatchObject({ code: 1, stderr: expect.stringContaining('pledgeview migrate') })
    expect(await outputOf(deployment, ['rebuild', 'status'])).toEqual({ rebuild: null })
  })

  test('a short time for tombstones is named in the log, in both statuses and as a metric', async () => {
    const warning = `the topic campaigns keeps tombstones for 24 hours (delete.retention.ms=${dayMs})`
    const { projector: told } = (await (await fetch(`${projector.opsUrl}/status`)).json()) as {
      projector: { warnings: string[] }
    }
    expect(told.warnings).toHaveLength(topics.length)
    expect(told.warnings[0]).toContain(warning)
    expect((await deployment.command(['status'])).stdout).toContain(warning)
    const metrics = await (await fetch(`${projector.opsUrl}/metrics`)).text()
    expect(metrics).toContain(`pledgeview_tombstone_retention_seconds{topic="campaigns"} ${dayMs / 1000}`)
    expect(projector.output()).toContain(warning)
  })

  test('after a longer absence a projector demands it; it comes out the same, and can be rolled back; no reject is stored again', async () => {
    const before = await outputOf<{ total: number }>(deployment, ['rejects', 'list', '--limit', '100'])
    await projector.stop()
    await passDays(2)
    await append(campaignEvent({ campaign_id: 'later' }))
    await expect(deployment.startProjector()).rejects.toThrow(
      /ended with 1 before it ran:.*away from the topic campaigns for 2 days.*for only 24 hours.*Run pledgeview rebuild/s,
    )
    const done = await rebuild(['--json'])
    expect(done.code, done.stderr).toBe(0)
    expect(linesOf(done)[0]).toMatchObject({ type: 'progress' })
    expect(resultOf(done)).toMatchObject({
      outcome: 'rebuilt',
      differences: { same: 40, added: 1, removed: 0, different: 0 },
    })
    projector = await deployment.startProjector()
    const back = await rebuild(['rollback', '--json'])
    expect(back.code, back.stderr).toBe(0)
    expect(resultOf(back)).toMatchObject({ outcome: 'rebuilt', differences: { added: 0, removed: 0 } })
    // Forming a consumer group takes seconds. Meanwhile it says what it waits for.
    const preparing = linesOf(back).filter(({ phase }) => phase === 'preparing')
    expect(preparing.at(-1)).toMatchObject({ waits_for: expect.stringContaining('Kafka') })
    expect(await rebuild(['drop'])).toMatchObject({
      code: 0,
      stdout: 'The tables that the rollback replaced are dropped.\n',
    })
    expect((await whenFolded(deployment, soon)).tables.public_campaigns).toBe(41)
    // Their count, and their times.
    expect(await outputOf(deployment, ['rejects', 'list', '--limit', '100'])).toEqual(before)
  })

  async function keepTombstonesForADay(): Promise<void> {
    const type = loadKafkajs().ConfigResourceTypes.TOPIC
    const configEntries = [
      { name: 'cleanup.policy', value: 'compact' },
      { name: 'delete.retention.ms', value: String(dayMs) },
    ]
    await withAdmin(kafka(), admin =>
      admin.alterConfigs({
        validateOnly: false,
        resources: topics.map(name => ({ type, name, configEntries })),
      }),
    )
  }

  /** The tables remember that everything was read this many days earlier. */
  async function passDays(days: number): Promise<void> {
    const tables = openTables(settingsFor(services.addresses.clickHouse))
    await tables.run({
      query: `ALTER TABLE pledgeview_ledger_1.positions UPDATE read_until = read_until - INTERVAL ${days} DAY WHERE 1 SETTINGS mutations_sync = 2`,
    })
    await tables.close()
  }

  /** Appends records that are not events. */
  async function appendBad(): Promise<void> {
    const writer = await openKafkaWriter(kafka(), { logger: silent })
    await writer.append(Array.from({ length: badRecords }, () => noEvent))
    await writer.close()
  }
})
