/** `migrate` on two shards: each gets its own tables, also one that was away or is new, and nothing is made where something is missing. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { generationOf } from '../../../services/tables/generations.ts'
import type { Shard } from '../../../services/tables/port.ts'
import { checkMigrated, migrate } from '../../../services/tables/schema/migrate.ts'
import { onEveryShard } from '../../../services/tables/shards.ts'
import { cluster, type ShardServers, startShards } from '../../support/clickhouse/shards.ts'

const names = { base: 'again', views: 'again_views' }
const query = `SELECT database, name FROM system.tables WHERE startsWith(database, 'again') ORDER BY ALL`

let servers: ShardServers
let near: Shard
let far: Shard
beforeAll(async () => {
  servers = await startShards(2)
  ;[near, far] = servers.shards as [Shard, Shard]
})
afterAll(() => servers?.stop())

const onBoth = () => migrate(onEveryShard([near, far]), names, cluster)

async function expectWhole(): Promise<void> {
  const made = await near.tables.rows({ query })
  expect(made.length).toBeGreaterThan(60)
  expect(await far.tables.rows({ query })).toEqual(made)
  for (const { tables } of [near, far]) await checkMigrated(tables, generationOf(names, 1))
}

async function lose({ tables }: Shard): Promise<void> {
  const own = "SELECT name FROM system.databases WHERE startsWith(name, 'again')"
  for (const { name } of await tables.rows<{ name: string }>({ query: own }))
    await tables.run({ query: `DROP DATABASE ${name} SYNC` })
}

test('makes nothing if one of the servers does not know the cluster that counts', async () => {
  const run = vi.fn()
  const silent = ({ tables, ...shard }: Shard) => ({ ...shard, tables: { ...tables, run } })
  const unknowing = { ...silent(far), tables: { ...far.tables, run, rows: async () => [] } }
  for (const [shards, name] of [
    [[near, far].map(silent), 'other'],
    [[silent(near), unknowing], cluster.cluster],
  ] as const)
    await expect(migrate(onEveryShard(shards), names, { cluster: name })).rejects.toThrow(
      `remote_servers needs a second cluster ${name}_counts`,
    )
  expect(run).not.toHaveBeenCalled()
})

test('goes on where a shard was away', async () => {
  const away = () => Promise.reject(new Error('the second shard is away'))
  const cut = { ...far, tables: { ...far.tables, insert: away } }
  await expect(migrate(onEveryShard([near, cut]), names, cluster)).rejects.toThrow('away')
  await onBoth()
  await expectWhole()
})

test('makes the tables of a new server in place of a lost one, but not of the first, which knew the current generation', async () => {
  await lose(far)
  await onBoth()
  await expectWhole()
  await lose(near)
  await expect(onBoth()).rejects.toThrow(
    'there are the databases again_ledger_1, again_read_1, and again.generation_log names no current generation',
  )
})
