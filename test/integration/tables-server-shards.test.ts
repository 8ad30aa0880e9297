/** Folding on a cluster: one folder a shard. The shards are servers of their own here; a cluster's Keeper has no stand-in. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { addDelivery, batchLogInsert, emptyBatch, ledgerInserts } from '../../services/projector/batch.ts'
import { createDecoder } from '../../services/projector/decode.ts'
import { createFolding, type Folding } from '../../services/projector/folding.ts'
import { backerHasher } from '../../services/projector/ledger-rows.ts'
import { tablesStatus } from '../../services/projector/status.ts'
import {
  checkShards,
  openShards,
  type Shards,
  ShardsDiffer,
} from '../../services/shared/tables/clickhouse-server-shards.ts'
import { migrate } from '../../services/shared/tables/migrate.ts'
import { defaultDatabases } from '../../services/shared/tables/port.ts'
import { type ClickHouseDoor, settingsFor, startClickHouseDoor } from '../support/clickhouse-door.ts'
import { campaignEvent, newRecordOf } from '../support/sample-events.ts'

const cluster = 'main'

describe('the shards of a cluster', () => {
  let directory: string
  let doors: ClickHouseDoor[]
  const opened: Shards[] = []

  /** Opens the doors with these numbers. */
  function shardsAt(...numbers: number[]): Shards {
    const urls = numbers.map(number => doors[number]?.url ?? '')
    const [first] = doors
    if (!first) throw new Error('no door')
    const shards = openShards(settingsFor(first), urls, defaultDatabases)
    opened.push(shards)
    return shards
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pledgeview-shards-'))
    doors = await Promise.all(
      ['one', 'two'].map(async name => {
        const configFile = join(directory, `${name}.xml`)
        await writeFile(configFile, serverXml(name))
        return startClickHouseDoor({ configFile })
      }),
    )
    const { shards } = shardsAt(0, 1)
    for (const { tables, databases } of shards) await migrate(tables, databases)
  })

  afterAll(async () => {
    await Promise.all(opened.map(shards => shards.close()))
    await Promise.all(doors.map(door => door.stop()))
    await rm(directory, { recursive: true, force: true })
  })

  test('are taken where there is one URL for each', async () => {
    await expect(checkShards(shardsAt(0, 1), cluster)).resolves.toBeUndefined()
  })

  test('are refused where one has no URL, since nobody would fold it', async () => {
    await expect(checkShards(shardsAt(0), cluster)).rejects.toThrow(ShardsDiffer)
  })

  test('are refused where two URLs lead to the same one', async () => {
    await expect(checkShards(shardsAt(1, 1), cluster)).rejects.toThrow('two URLs lead to the shard two')
  })

  test('are folded each by itself, and only both together are done', async () => {
    const { shards } = shardsAt(0, 1)
    const folding = foldingOf(shards)
    const stop = new AbortController()
    const running = folding.run(stop.signal)
    // Every shard has the batch log of all, and of the ledger its own campaigns.
    await Promise.all(shards.map(({ tables }, index) => tables.insert(ledgerOf(index))))
    for (const { tables } of shards) await tables.insert(batchLog())
    folding.noteBatch({ hasKeys: false })
    expect(folding.isDone()).toBe(false)
    await vi.waitFor(() => expect(folding.isDone()).toBe(true), { timeout: 20_000, interval: 20 })
    const campaigns = await Promise.all(
      shards.map(({ tables, databases }) =>
        tables.rows({ query: `SELECT campaign_id FROM ${databases.views}.campaigns` }),
      ),
    )
    expect(campaigns).toEqual([[{ campaign_id: 'c0' }], [{ campaign_id: 'c1' }]])
    stop.abort()
    await running
  })

  test('make the status tell of the one that is the furthest behind', async () => {
    const { shards } = shardsAt(0, 1)
    const [first, second] = shards
    if (!first || !second) throw new Error('no shards')
    const before = await tablesStatus({ ...first, shards })
    expect(before.fold.pending_batches).toBe(0)
    await second.tables.insert(batchLog(2))
    expect((await tablesStatus({ ...first, shards })).fold.pending_batches).toBe(1)
  })
})

const batch = emptyBatch('a')
addDelivery(
  batch,
  {
    assignment: 'a',
    positions: [{ topic: 'campaigns', partition: 0, next: 2 }],
    records: [0, 1].map(offset => ({
      ...newRecordOf(campaignEvent({ campaign_id: `c${offset}`, slug: `s${offset}`, status: 'LIVE' })),
      partition: 0,
      offset,
      appendedAt: 0,
    })),
  },
  createDecoder(),
  backerHasher('0'.repeat(64)),
)

/** The batch's campaign of one shard. */
function ledgerOf(index: number) {
  const [insert] = ledgerInserts(batch, defaultDatabases)
  if (!insert) throw new Error('a batch without campaigns')
  return { ...insert, body: `${insert.body.trim().split('\n')[index]}\n` }
}

function batchLog(sequence = 1) {
  return batchLogInsert(batch, defaultDatabases, { projector: 'p', sequence })
}

function foldingOf(shards: Shards['shards']): Folding {
  return createFolding({
    shards,
    holder: 'p',
    settings: { horizonMs: 20_000, settleMs: 0, platformDigits: 2, campaignsPerStatementMax: 1_000 },
    leads: () => true,
    idleMsMax: 20,
    retryMsMax: 5_000,
    onFold: () => {},
    onRetry: () => {},
    onSuperseded: () => {},
    onTakeOver: () => {},
    monotonicMs: () => performance.now(),
    now: Date.now,
    random: Math.random,
  })
}

function serverXml(shard: string): string {
  const server = (host: string) => `<shard><replica><host>${host}</host><port>9000</port></replica></shard>`
  return `<clickhouse>
    <macros><shard>${shard}</shard><replica>1</replica></macros>
    <remote_servers><${cluster}>${server('127.0.0.1')}${server('127.0.0.2')}</${cluster}></remote_servers>
  </clickhouse>`
}
