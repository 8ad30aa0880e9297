/** Folding on a cluster: one fold worker a shard. The shards are two servers. They need no Keeper to be folded. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { foldWorkerSettings } from '../../../services/projector/fold/fold-settings.ts'
import { createFoldWorkers, type FoldWorkers } from '../../../services/projector/fold/fold-workers.ts'
import { backerHasher } from '../../../services/projector/ingest/backer-hash.ts'
import {
  addDelivery,
  type Batch,
  batchLogInsert,
  emptyBatch,
  ledgerInserts,
} from '../../../services/projector/ingest/batch.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { tablesStatus } from '../../../services/projector/status.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { migrate } from '../../../services/tables/migrate.ts'
import { checkShards, openShards, type Shards, ShardsDiffer } from '../../../services/tables/shards.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { campaignEvent, newRecordOf } from '../../support/events/sample-events.ts'

const cluster = 'main'

describe('the shards of a cluster', () => {
  let servers: ClickHouse[]
  const opened: Shards[] = []

  /** Opens the servers with these numbers. */
  function shardsAt(...numbers: number[]): Shards {
    const urls = numbers.map(number => servers[number]?.url ?? '')
    const [first] = servers
    if (!first) throw new Error('no server')
    const shards = openShards(settingsFor(first), urls, defaultDatabases)
    opened.push(shards)
    return shards
  }

  beforeAll(async () => {
    servers = await Promise.all(['one', 'two'].map(shard => startClickHouse({ more: ofCluster(shard) })))
    const { shards } = shardsAt(0, 1)
    for (const { tables, databases } of shards) await migrate(tables, databases)
  })

  afterAll(async () => {
    await Promise.all(opened.map(shards => shards.close()))
    await Promise.all(servers.map(server => server.stop()))
  })

  test('are accepted if there is one URL for each', async () => {
    await expect(checkShards(shardsAt(0, 1), cluster)).resolves.toBeUndefined()
  })

  test('are refused if one has no URL, because it would never be folded', async () => {
    await expect(checkShards(shardsAt(0), cluster)).rejects.toThrow(ShardsDiffer)
  })

  test('are refused if two URLs lead to the same one', async () => {
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
    folding.noteBatch({ isUrgent: false })
    expect(folding.isDone()).toBe(false)
    await vi.waitFor(() => expect(folding.isDone()).toBe(true), { timeout: 60_000, interval: 20 })
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

/** A batch with the campaigns of these numbers. */
function batchOf(...numbers: number[]): Batch {
  const batch = emptyBatch('a', backerHasher('0'.repeat(64), 'siphash-2-4'))
  const records = numbers.map(offset => ({
    ...newRecordOf(campaignEvent({ campaign_id: `c${offset}`, slug: `s${offset}`, status: 'LIVE' })),
    partition: 0,
    offset,
    appendedAt: 0,
  }))
  const positions = [{ topic: 'campaigns', partition: 0, next: 2 } as const]
  addDelivery(batch, { assignment: 'a', positions, records }, createDecoder())
  return batch
}

/** The batch's campaign of one shard. */
function ledgerOf(index: number) {
  const [insert] = ledgerInserts(batchOf(index), defaultDatabases)
  if (!insert) throw new Error('a batch without campaigns')
  return insert
}

function batchLog(sequence = 1) {
  return batchLogInsert(batchOf(0, 1), defaultDatabases, { projector: 'p', sequence })
}

function foldingOf(shards: Shards['shards']): FoldWorkers {
  return createFoldWorkers({
    shards,
    holder: 'p',
    settings: { ...foldWorkerSettings(readConfig({})), foldMsMax: 20_000 },
    leads: () => true,
    rememberWatermark: async watermark => watermark,
    idleMsMax: 20,
    retryMsMax: 5_000,
    onFold: () => {},
    onRetry: () => {},
    onSuperseded: () => {},
    onLeadership: () => {},
    onClockStep: () => {},
    monotonicMs: () => performance.now(),
    now: Date.now,
    random: Math.random,
  })
}

/** The configuration of a server that is the shard of this name. */
function ofCluster(shard: string) {
  const shardAt = (host: string) => ({ replica: { host, port: 9000 } })
  return {
    macros: { shard, replica: '1' },
    remote_servers: { [cluster]: { shard: [shardAt('127.0.0.1'), shardAt('127.0.0.2')] } },
  }
}
