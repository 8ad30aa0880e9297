/** A rebuild of two real shards: what it changes, what it keeps, and how it is taken back. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { dropOthers, rebuildStatus } from '../../../../services/generations/rebuilds.ts'
import { generationOf } from '../../../../services/tables/generation-log.ts'
import type { Databases, Shard, Tables } from '../../../../services/tables/port.ts'
import { obstructed } from '../../../support/clickhouse/faulty-tables.ts'
import { type ShardServers, startShards } from '../../../support/clickhouse/shards.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../../support/events/sample-events.ts'
import {
  compactLog,
  isPromotion,
  isStamps,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../../support/generations/rebuilds.ts'
import { openRebuildableShards } from '../../../support/generations/shard-rebuilds.ts'
import { activeKeys, column, stampsById } from '../../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../../support/projector/model-tables.ts'
import { backUpTables, watermarkIn } from '../../../support/projector/positions.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000, hookTimeout: 300_000 })

let servers: ShardServers
let live: RebuildableModel
const events: ChangeEvent[] = platformHistory(40)

beforeAll(async () => {
  servers = await startShards(2)
  live = await openRebuildableShards(servers)
  await live.append(events)
  await live.settled()
})
afterAll(async () => {
  await live?.close()
  await servers?.stop()
})

async function append(more: readonly ChangeEvent[]): Promise<void> {
  events.push(...more)
  await live.append(more)
  await live.settled()
}

async function expectTruth(): Promise<void> {
  await live.settled()
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
}

test('correct tables come out the same on each shard, and keep their stamps; a rollback and a drop do so too', async () => {
  const before = await stampsOf(live)
  const { detail } = await live.rebuild()
  expect(detail.differences).toMatchObject({ same: before.length, added: 0, removed: 0, different: 0 })
  expect(detail.records).toBe(events.length)
  await expectTruth()
  expect(await stampsOf(live)).toEqual(before)
  for (const { tables, databases } of live.cluster?.shards ?? []) {
    const own = `SELECT count() AS value FROM ${databases.read}.campaigns FINAL`
    expect(Number((await column(tables, own))[0])).toBeGreaterThan(0)
    // Of a shard's campaigns, and of no others.
    const idsIn = ({ ledger }: Databases) =>
      column(tables, `SELECT campaign_id AS value FROM ${ledger}.campaign_ledger FINAL ORDER BY value`)
    expect(await idsIn(databases)).toEqual(await idsIn(generationOf(databases, 1)))
  }
  expect(await rebuildStatus(live)).toMatchObject({ phase: 'rebuilt', isPreviousKept: true })
  await expect(live.rebuild()).rejects.toThrow('are still kept')
  const gone = await Promise.all((live.cluster?.shards ?? []).map(publicOn))
  await append([
    pledgeEvent({ campaign_id: 'c1', pledge_id: 'before the rollback' }),
    ...gone.map((key): ChangeEvent => ({ type: 'campaign', key, data: null })),
    campaignEvent({ campaign_id: 'c1', version: 1_000, status: 'SUBMITTED' }),
    campaignEvent({ campaign_id: 'last' }),
  ])
  compactLog(live)
  const changed = await stampsOf(live)
  await live.rebuild({ kind: 'rollback' })
  // At once, and then.
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  await expectTruth()
  expect(await stampsOf(live)).toEqual(changed)
  await dropOthers(live)
  expect(await generationsOn(live)).toEqual([1, 1])
  await expect(live.rebuild({ kind: 'rollback' })).rejects.toThrow('no previous tables')
})

test('killed after the row, it has the deletions from just before it, also if the log has forgotten them', async () => {
  const { tables, databases } = live.cluster?.shards[0] ?? live
  const first = await column(
    tables,
    `SELECT campaign_id AS value FROM ${databases.read}.campaigns FINAL WHERE campaign_id > 'c10' ORDER BY value`,
  )
  let isDead = false
  let isSaid = false
  const mortal = (own: Tables) =>
    obstructed(own, {
      async before({ text }) {
        if (isDead) throw new Error('killed')
        if (isSaid || !isStamps(text)) return
        isSaid = true
        const gone: ChangeEvent = { type: 'campaign', key: String(first.pop()), data: null }
        events.push(gone)
        await live.append([gone])
        await live.committed()
      },
      after({ text }) {
        isDead ||= isPromotion(text)
        if (isDead) throw new Error('killed')
      },
    })
  const killed = live.rebuild({ tables: mortal(live.tables), tablesOfShard: shard => mortal(shard.tables) })
  await expect(killed).rejects.toThrow('killed')
  const last = campaignEvent({ campaign_id: 'c99' })
  events.push(last)
  await live.append([last])
  await live.settled()
  compactLog(live)
  // The views follow the row by themselves: nobody has to repeat the command.
  await vi.waitFor(expectTruth, { timeout: 60_000, interval: 200 })
  await live.rebuild()
  await dropOthers(live)
})

test('a shard that was restored alone is noticed: a poller is told what its backup lacks, once; and deletions stay on each, whatever history is read', async () => {
  const shard = live.cluster?.shards[1] ?? live
  const campaign_id = await publicOn(shard)
  const campaign = (version: number, title: string) => campaignEvent({ campaign_id, version, title })
  await append([campaign(1_000, 'A')])
  const { ledger, read } = shard.databases
  const restore = await backUpTables(shard.tables, [ledger, read])
  const copied = await watermarkIn(shard)
  await append([campaign(1_001, 'B')])
  // What lists show is the lowest of both shards, and a leader remembers the one before the last.
  await expect.poll(async () => (await live.remembered()).shown).toBeGreaterThan(copied)
  const since = await watermarkIn(live)
  await append([campaign(1_002, 'A')])
  await live.stopProjector()
  await restore()
  await live.rebuild()
  await live.startProjector()
  await expectTruth()
  expect((await stampsById(live))[campaign_id]).toBeGreaterThanOrEqual(since)
  await dropOthers(live)
  const archived = [...events]
  for (const one of live.cluster?.shards ?? [])
    await append([{ type: 'campaign', key: await publicOn(one), data: null }])
  await append([
    { type: 'pledge', key: 'c2/p0', data: null },
    { type: 'api-key', key: 'k', data: null },
  ])
  // The log ends with other records, so that it can forget the tombstones.
  await append([
    campaignEvent({ campaign_id: 'c100' }),
    pledgeEvent({ campaign_id: 'c100', pledge_id: 'p1' }),
    apiKeyEvent({ key: 'k2', account_id: 'acc' }),
  ])
  compactLog(live)
  const stamps = await stampsById(live)
  await live.append(archived)
  await live.rebuild()
  await expectTruth()
  expect(await stampsById(live)).toEqual(stamps)
  expect(await activeKeys(live.tables, live.databases)).toEqual(['k2'])
  // The shards share the batch log. A batch with the name of a folded one of another shard would count as folded.
  const name = `${live.databases.ledger}.batch_log`
  const shared = `SELECT projector AS value FROM ${name} GROUP BY projector, sequence HAVING count() > 1`
  expect(await column(live.tables, shared)).toEqual([])
})

/** The first public campaign of the shard. */
async function publicOn({ tables, databases }: Shard): Promise<string> {
  const query = `SELECT min(campaign_id) AS value FROM ${databases.read}.campaigns FINAL WHERE is_deleted = 0`
  return String((await column(tables, query))[0])
}

/** How many generations each server has. */
async function generationsOn({ cluster }: RebuildableModel): Promise<number[]> {
  const query = "SELECT count() AS value FROM system.databases WHERE match(name, '_ledger_[0-9]+$')"
  const counts = (cluster?.shards ?? []).map(({ tables }) => column(tables, query))
  return (await Promise.all(counts)).map(([count]) => Number(count))
}
