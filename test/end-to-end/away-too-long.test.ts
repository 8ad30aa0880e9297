/** Projectors that were away for longer than Kafka keeps tombstones. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { topics } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { loadKafkajs } from '../../services/log/kafka/repairs/library.ts'
import { openTables } from '../../services/tables/clickhouse.ts'
import { settingsFor } from '../support/clickhouse.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { withAdmin } from '../support/kafka/topics.ts'
import { untilDrained } from '../support/kickstarter.ts'
import { resultOf } from '../support/rebuild-service.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { campaignEvent } from '../support/sample-events.ts'
import { type LocalServices, localServices, startLocalServices } from '../support/stack.ts'

const dayMs = 86_400_000
let requirement: Requirement
let services: LocalServices
let deployment: Deployment

beforeAll(async () => {
  requirement = await localServices()
  if (!requirement.isMet) return
  services = await startLocalServices()
  deployment = await deploy(services.addresses)
}, 300_000)

beforeEach(context => needs(context, requirement))

afterAll(async () => {
  await deployment?.stop()
  await services?.stop()
})

test('a short time for tombstones is named, and after a longer absence a projector demands a rebuild', async () => {
  await keepTombstonesFor(dayMs)
  await append('c1')
  const first = await deployment.startProjector()
  await untilDrained(first)
  // Named in the log, in the status of the process, in the command's, and as a metric.
  const warning = `the topic campaigns keeps tombstones for 24 hours (delete.retention.ms=${dayMs})`
  const { projector } = (await (await fetch(`${first.opsUrl}/status`)).json()) as {
    projector: { warnings: string[] }
  }
  expect(projector.warnings).toHaveLength(topics.length)
  expect(projector.warnings[0]).toContain(warning)
  expect((await deployment.command(['status'])).stdout).toContain(warning)
  const metrics = await (await fetch(`${first.opsUrl}/metrics`)).text()
  expect(metrics).toContain(`pledgeview_tombstone_retention_seconds{topic="campaigns"} ${dayMs / 1000}`)
  await first.stop()
  expect(first.output()).toContain(warning)

  await passDays(2)
  await append('c2')
  await expect(deployment.startProjector()).rejects.toThrow(
    /ended with 1 before it ran:.*away from the topic campaigns for 2 days.*for only 24 hours.*Run pledgeview rebuild/s,
  )
  const rebuilt = await deployment.command(['rebuild', '--json'])
  expect(rebuilt.code, rebuilt.stderr).toBe(0)
  expect(resultOf(rebuilt)).toMatchObject({ outcome: 'rebuilt' })
  const last = await deployment.startProjector()
  await untilDrained(last)
  const { stdout } = await deployment.command(['status', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ tables: { public_campaigns: 2 } })
}, 600_000)

async function append(campaign_id: string): Promise<void> {
  const line = `${formatEvent(campaignEvent({ campaign_id }))}\n`
  expect((await deployment.command(['events', 'append', '-'], line)).code).toBe(0)
}

async function keepTombstonesFor(ms: number): Promise<void> {
  const settings = { brokers: [services.addresses.kafka], clientId: 'test', topicPrefix: '' }
  const type = loadKafkajs().ConfigResourceTypes.TOPIC
  const configEntries = [
    { name: 'cleanup.policy', value: 'compact' },
    { name: 'delete.retention.ms', value: String(ms) },
  ]
  await withAdmin(settings, admin =>
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
    query: `ALTER TABLE pledgeview.positions UPDATE read_until = read_until - INTERVAL ${days} DAY WHERE 1 SETTINGS mutations_sync = 2`,
  })
  await tables.close()
}
