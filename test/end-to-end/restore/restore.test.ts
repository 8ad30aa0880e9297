/**
 * The restore of deploy/restore.md, on a real Kafka and three ClickHouse servers: last night's backup of the tables, a log that went
 * on since, and projectors that notice that the tables went back. What was deleted or revoked after the backup stays so. Without any
 * backup, the same projectors fill new tables, as for another number of shards, and can return to the old ones.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { type Deployment, deploy } from '../../support/deployment/deployment.ts'
import type { ServiceProcess } from '../../support/deployment/service-process.ts'
import { issueCredentials, untilDrained, untilLeads } from '../../support/events/kickstarter.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { type KafkaBroker, startKafka } from '../../support/kafka/broker.ts'
import { kafkaRequirement } from '../../support/kafka/jars.ts'
import { needs, type Requirement } from '../../support/runner/requirements.ts'

const kafkaVersion = '4.4.0'
const backups = mkdtempSync(join(tmpdir(), 'pledgeview-backups-'))
const backup = ['pledgeview', 'pledgeview_ledger_1', 'pledgeview_read_1', 'crowdfunding']
  .map(name => `DATABASE ${name}`)
  .join(', ')
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
let outputs: string[]
let beforeStart: { projector: { lag: { committed: number; end: number }[] } }
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
    // Everything so far was read longer ago than the margin of a restore.
    for (const [table, column] of [
      ['batch_log', 'appended_at'],
      ['positions', 'written_at'],
    ]) {
      const query = `ALTER TABLE pledgeview_ledger_1.${table} UPDATE ${column} = ${column} - INTERVAL 2 DAY WHERE 1 SETTINGS mutations_sync = 2`
      await tables.run({ query })
    }
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
    // The backup is of last night: the watermark that is remembered is past it. The leader remembers one with the next one.
    for (let step = 0; step < 3; step++) {
      const last = await asOf(tables)
      await vi.waitFor(async () => expect(await asOf(tables)).not.toBe(last), {
        timeout: 60_000,
        interval: 50,
      })
    }
    before = await campaigns(tables)
    watermark = await asOf(tables)
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
    outputs = projectors.map(one => one.output())
    await Promise.all(projectors.map(one => one.stop()))
  }, 480_000)

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await deployment?.stop()
    await Promise.all(servers.map(server => server.stop()))
    await kafka?.stop()
    rmSync(backups, { recursive: true, force: true })
  })

  test('is noticed: the status counts what the tables lack, and a projector says once that its partitions went back', async () => {
    const { lag } = beforeStart.projector
    expect(lag.some(({ committed, end }) => committed < end)).toBe(true)
    // Two that start at once, each with half of the partitions, both say it.
    const said = outputs.map(
      one => one.match(/the tables went back: lists have shown changes up to/g)?.length ?? 0,
    )
    expect(Math.max(...said)).toBe(1)
  })

  test('has what came after the backup, and undoes no deletion', async () => {
    const after = await nowVisible()
    expect(after.map(({ id, title }) => [id, title])).toEqual(before.map(({ id, title }) => [id, title]))
    expect(after.map(({ id }) => id)).toEqual(['changed', 'new', 'same'])
  })

  test('keeps the stamp of what was read long before the backup, and a poller gets the rest again', async () => {
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

  test('is over after the first start: the next projector reads on', async () => {
    const projector = await deployment.startProjector(moved)
    await untilDrained(projector)
    await projector.stop()
    expect(projector.output()).not.toContain('the tables went back')
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
    const rows = await onServer(2, campaigns)
    expect(rows.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
    // A poller that goes on with its watermark from the other tables fetches them all.
    const passed = await onServer(1, asOf)
    expect(rows.filter(({ updated_at }) => updated_at < passed)).toEqual([])
    await append([campaignEvent({ campaign_id: 'later' })])
    await untilDrained(...projectors)
    await Promise.all(projectors.map(projector => projector.stop()))
    watermark = await onServer(2, asOf)
  }, 240_000)

  test('on the way back to the old tables, these are read again as after a restore, with stamps that no poller of the new ones has passed', async () => {
    const unchanged = new Map((await nowVisible()).map(({ id, updated_at }) => [id, updated_at]))
    const projector = await deployment.startProjector(moved)
    await untilDrained(projector)
    await projector.stop()
    expect(projector.output()).toContain('the tables went back')
    const after = await nowVisible()
    expect(after.map(({ id }) => id)).toEqual(['changed', 'later', 'new', 'same'])
    for (const { id, updated_at } of after) {
      if (id === 'same') expect(updated_at).toBe(unchanged.get(id))
      else expect(updated_at >= watermark, id).toBe(true)
    }
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

/** The watermark of these tables. */
async function asOf(tables: Tables): Promise<string> {
  const [about] = await tables.rows<{ as_of: string }>({
    query: 'SELECT toString(as_of) AS as_of FROM crowdfunding.about',
  })
  return about?.as_of ?? ''
}

const nowVisible = () => onServer(1, campaigns)

async function onServer<T>(number: number, work: (tables: Tables) => Promise<T>): Promise<T> {
  const tables = openTables(settingsFor(servers[number] as ClickHouse))
  try {
    return await work(tables)
  } finally {
    await tables.close()
  }
}
