/**
 * The restore of deploy/README.md, on a real Kafka and three ClickHouse servers: last night's backup of the tables, a log that went
 * on since, and projectors that notice that their group is ahead of the tables. What was deleted or revoked after the backup
 * stays so. Without any backup, the same projectors fill new tables.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { openTables } from '../../services/shared/tables/clickhouse.ts'
import type { Tables } from '../../services/shared/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../support/clickhouse.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { type KafkaBroker, startKafka } from '../support/kafka/broker.ts'
import { kafkaRequirement } from '../support/kafka/jars.ts'
import { issueCredentials, untilDrained, untilLeads } from '../support/kickstarter.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { campaignEvent, pledgeEvent } from '../support/sample-events.ts'
import type { ServiceProcess } from '../support/service-process.ts'

const kafkaVersion = '4.4.0'
const backups = mkdtempSync(join(tmpdir(), 'pledgeview-backups-'))
const backup = `DATABASE pledgeview, DATABASE crowdfunding`
const file = `File('${backups}/night/')`
const more = { backups: { allowed_path: backups, allow_concurrent_backups: 'false' } }

let requirement: Requirement
let kafka: KafkaBroker
const servers: ClickHouse[] = []
let deployment: Deployment
let moved: Readonly<Record<string, string>>
let kept: Record<string, string>
let revoked: Record<string, string>
let watermark = ''
let output = ''
let beforeStart: { projector: { lag: { committed: number; end: number }[]; warnings: string[] } }
let before: Row[]

interface Row {
  id: string
  title: string
  updated_at: string
}

describe('a restore of last night', () => {
  beforeAll(async () => {
    requirement = await kafkaRequirement(kafkaVersion)
    if (!requirement.isMet) return
    kafka = await startKafka(kafkaVersion)
    servers.push(await startClickHouse({ more }))
    deployment = await deploy({ kafka: kafka.address, clickHouse: servers[0] as ClickHouse })
    const projector = await deployment.startProjector()
    await untilLeads(projector)
    await append(['same', 'changed', 'deleted', 'hidden'].map(campaign_id => campaignEvent({ campaign_id })))
    await append([pledgeEvent({ campaign_id: 'same', pledge_id: 'p' })])
    kept = await issueCredentials(deployment.command, 'kept')
    revoked = await issueCredentials(deployment.command, 'revoked')
    await untilDrained(projector)
    const tables = openTables(settingsFor(servers[0] as ClickHouse))
    await tables.run({ query: `BACKUP ${backup} TO ${file}` })

    await append([
      campaignEvent({ campaign_id: 'changed', version: 2, title: 'Changed after the backup' }),
      campaignEvent({ campaign_id: 'hidden', version: 2, status: 'SUSPENDED' }),
      campaignEvent({ campaign_id: 'new' }),
    ])
    await append([], '{"type":"campaign","key":"deleted","data":null}\n')
    const { code, stderr } = await deployment.command(['keys', 'revoke', revoked['X-API-Key'] ?? ''])
    expect(code, stderr).toBe(0)
    await untilDrained(projector)
    before = await campaigns(tables)
    const [about] = await tables.rows<{ as_of: string }>({
      query: 'SELECT toString(as_of) AS as_of FROM crowdfunding.about',
    })
    watermark = about?.as_of ?? ''
    await tables.close()

    // The server and its disk are lost.
    await projector.stop()
    await servers[0]?.stop()
    servers.push(await startClickHouse({ more }))
    const { url, user, password } = servers[1] as ClickHouse
    moved = {
      PLEDGEVIEW_CLICKHOUSE_URL: url,
      PLEDGEVIEW_CLICKHOUSE_USER: user,
      PLEDGEVIEW_CLICKHOUSE_PASSWORD: password,
    }
    const restored = openTables(settingsFor(servers[1] as ClickHouse))
    await restored.run({ query: `RESTORE ${backup} FROM ${file}` })
    await restored.close()
    const migrated = await deployment.command(['migrate'], '', moved)
    expect(migrated.code, migrated.stderr).toBe(0)
    const { stdout } = await deployment.command(['status', '--json'], '', moved)
    beforeStart = JSON.parse(stdout)
    // Both get some of the partitions.
    const projectors = await Promise.all([deployment.startProjector(moved), deployment.startProjector(moved)])
    await untilDrained(...projectors)
    output = projectors.map(one => one.output()).join('')
    await Promise.all(projectors.map(one => one.stop()))
  }, 480_000)

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await deployment?.stop()
    await Promise.all(servers.map(server => server.stop()))
    await kafka?.stop()
    rmSync(backups, { recursive: true, force: true })
  })

  test('is noticed: the status counts what is read again, and status and log name both positions', async () => {
    const { lag, warnings } = beforeStart.projector
    expect(lag.some(({ committed, end }) => committed < end)).toBe(true)
    const line = /the consumer group is at \d+ of campaigns\/\d+, but the tables have/
    expect(warnings.filter(warning => line.test(warning))).not.toEqual([])
    expect(output).toMatch(line)
  })

  test('has what came after the backup, and undoes no deletion', async () => {
    const after = await nowVisible()
    expect(after.map(({ id, title }) => [id, title])).toEqual(before.map(({ id, title }) => [id, title]))
    expect(after.map(({ id }) => id)).toEqual(['changed', 'new', 'same'])
  })

  test('keeps the stamp of what did not change since the backup, and a poller gets the rest again', async () => {
    const after = new Map((await nowVisible()).map(row => [row.id, row.updated_at]))
    expect(after.get('same')).toBe(before.find(({ id }) => id === 'same')?.updated_at)
    for (const id of ['changed', 'new']) expect(after.get(id)?.localeCompare(watermark)).toBe(1)
  })

  test('refuses a key that was revoked after the backup, and accepts the others', async () => {
    const query: ServiceProcess = await deployment.startQuery(moved)
    const statusWith = async (headers: Record<string, string>) =>
      (await fetch(`${query.apiUrl}/projects`, { headers })).status
    await expect.poll(() => statusWith(kept)).toBe(200)
    expect(await statusWith(revoked)).toBe(401)
  })

  test('is over after the first start: the next projector goes on where its group is', async () => {
    const projector = await deployment.startProjector(moved)
    await untilDrained(projector)
    const { stdout } = await deployment.command(['status', '--json'], '', moved)
    await projector.stop()
    expect(projector.output()).not.toContain('the consumer group is at')
    expect(JSON.parse(stdout).projector.warnings.join()).not.toContain('the consumer group is at')
  })

  test('without a backup fills new tables with everything that the log has', async () => {
    servers.push(await startClickHouse({ more }))
    const { url, user, password } = servers[2] as ClickHouse
    const anew = {
      PLEDGEVIEW_CLICKHOUSE_URL: url,
      PLEDGEVIEW_CLICKHOUSE_USER: user,
      PLEDGEVIEW_CLICKHOUSE_PASSWORD: password,
    }
    expect((await deployment.command(['migrate'], '', anew)).code).toBe(0)
    // The second may be given its partitions after the first has filled tables.
    const projectors = await Promise.all([deployment.startProjector(anew), deployment.startProjector(anew)])
    await untilDrained(...projectors)
    const tables = openTables(settingsFor(servers[2] as ClickHouse))
    expect((await campaigns(tables)).map(({ id }) => id)).toEqual(before.map(({ id }) => id))
    await tables.close()
    await Promise.all(projectors.map(projector => projector.stop()))
  }, 240_000)
})

async function append(events: readonly ChangeEvent[], more = ''): Promise<void> {
  const lines = events.map(event => `${formatEvent(event)}\n`).join('') + more
  const { code, stderr } = await deployment.command(['events', 'append', '-'], lines)
  expect(code, stderr).toBe(0)
}

function campaigns(tables: Tables): Promise<Row[]> {
  const query =
    'SELECT campaign_id AS id, title, toString(updated_at) AS updated_at FROM crowdfunding.campaigns ORDER BY campaign_id'
  return tables.rows<Row & Record<string, unknown>>({ query })
}

async function nowVisible(): Promise<Row[]> {
  const tables = openTables(settingsFor(servers[1] as ClickHouse))
  try {
    return await campaigns(tables)
  } finally {
    await tables.close()
  }
}
