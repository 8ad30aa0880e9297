/**
 * The shadow tables: a second set of the model's tables in a database beside it. While a rebuild runs, they are the ones that
 * it builds. After the swap, they are the ones that were live before.
 *
 * The swap covers the tables that are a function of the events: ledgers, read tables, and the positions up to which the log is in
 * them. What describes processes (batch log, progress of the fold, epochs) stays where it is.
 *
 * On a cluster each shard has shadow tables as one server has them. So they are swapped, folded and dropped on their own server.
 * Beside them is a database with the ledgers of all shards, through which a rebuild inserts each row on its shard.
 */
import { migrate } from '../../tables/migrate.ts'
import { type Databases, type Shard, type Tables, TablesError } from '../../tables/port.ts'
import { placementOf } from '../../tables/replicated.ts'
import { type Time, untilNoneRuns } from '../../tables/running-statements.ts'
import { type NamedShard, onEach, type RebuildTables } from '../cluster.ts'
import { isRevoked, permitPair, type SwapPermit } from '../swap/swap-permit.ts'
import { ledgers } from './ledgers.ts'

// Ledgers come first, so that a reader never joins campaigns with an older ledger. Positions come last: who reads on from the new
// ones writes into the new ledgers.
export const swappedTables = [
  'campaign_ledger',
  'pledge_ledger',
  'api_key_ledger',
  'campaigns',
  'api_keys',
  'positions',
] as const

const swapAttemptsMax = 10
const swapRetryMs = 500
const swapMsMax = 60_000

export type SwappedTable = (typeof swappedTables)[number]

/** ClickHouse's UUIDs. They tell which table is which after a swap. */
export type TableIds = Readonly<Partial<Record<SwappedTable, string>>>

/** The databases of the shadow tables. */
export function shadowOf({ model, views }: Databases): Databases {
  return { model: `${model}_shadow`, views: `${views}_shadow` }
}

/** Creates the shadow tables that do not exist yet. `id`: of the rebuild. */
export async function createShadow({ tables, databases, cluster }: RebuildTables, id: string): Promise<void> {
  if (!cluster) {
    await migrate(tables, shadowOf(databases))
    return
  }
  const { name, shards } = cluster
  await onEach(shards, shard => createShadowOfShard(shard, id))
  // They have the columns that the shards' ledgers have now.
  const whole = shadowOf(databases).model
  await onEach(shards, async ({ tables, databases: own }) => {
    const { model } = shadowOf(own)
    await tables.run({ query: `CREATE DATABASE IF NOT EXISTS ${whole}` })
    for (const ledger of ledgers) {
      await tables.run({
        query: `CREATE OR REPLACE TABLE ${whole}.${ledger.name} AS ${model}.${ledger.name}
                ENGINE = Distributed('${name}', '${model}', '${ledger.name}', ${placementOf(ledger.name)})`,
      })
    }
  })
}

/**
 * They have the engines of the live tables, because they take their place. A replicated table is known to Keeper by a path, which it
 * keeps when it is swapped, so each rebuild needs paths of its own.
 */
async function createShadowOfShard({ tables, databases }: NamedShard, id: string): Promise<void> {
  const [row] = await tables.rows<{ replicated: number }>({
    query: `SELECT count() AS replicated FROM system.tables
            WHERE database = {model:String} AND name = 'campaign_ledger' AND startsWith(engine, 'Replicated')`,
    query_params: { model: databases.model },
  })
  const isReplicated = Number(row?.replicated ?? 0) > 0
  await migrate(tables, shadowOf(databases), isReplicated ? { replicatedAlone: id } : {})
}

/** Whether there are shadow tables; on a cluster, on any shard. */
export async function hasShadow(place: RebuildTables): Promise<boolean> {
  return (await shadowsOf(place)).includes(true)
}

/** Whether all of the shadow tables are there. A cluster may have lost some of them in a drop that was killed. */
export async function hasWholeShadow(place: RebuildTables): Promise<boolean> {
  return !(await shadowsOf(place)).includes(false)
}

/** Each server has its own shadow tables. */
function serversOf({ tables, databases, cluster }: RebuildTables): readonly Shard[] {
  return cluster?.shards ?? [{ tables, databases }]
}

function shadowsOf(place: RebuildTables): Promise<boolean[]> {
  return onEach(serversOf(place), async ({ tables, databases }) => {
    const [found] = await tables.rows<{ databases: number }>({
      query: 'SELECT count() AS databases FROM system.databases WHERE name = {name:String}',
      query_params: { name: shadowOf(databases).model },
    })
    return (found?.databases ?? 0) > 0
  })
}

/** Drops the shadow tables, if there are any. */
export async function dropShadow(place: RebuildTables): Promise<void> {
  const whole = shadowOf(place.databases).model
  await onEach(serversOf(place), async ({ tables, databases }) => {
    const { model, views } = shadowOf(databases)
    await tables.run({ query: `DROP DATABASE IF EXISTS ${views} SYNC` })
    if (whole !== model) await tables.run({ query: `DROP DATABASE IF EXISTS ${whole} SYNC` })
    await tables.run({ query: `DROP DATABASE IF EXISTS ${model} SYNC` })
  })
}

/** The UUIDs of the tables in this database. */
export async function readTableIds(tables: Tables, { model }: Databases): Promise<TableIds> {
  const rows = await tables.rows<{ name: SwappedTable; id: string }>({
    query: `SELECT name, toString(uuid) AS id FROM system.tables
            WHERE database = {model:String} AND name IN {names:Array(String)}`,
    query_params: { model, names: [...swappedTables] },
  })
  return Object.fromEntries(rows.map(({ name, id }) => [name, id]))
}

/** The permit of the swap was revoked: another process folds. Nothing was swapped. */
export class SwapPermitRevoked extends Error {
  override name = 'SwapPermitRevoked'
}

/**
 * Swaps the tables with these UUIDs into the live database, in one statement. Tables that are already there are skipped, so
 * it can be repeated after a failure. `tables` must not retry by themselves: swapping twice undoes the swap.
 * `permit`: swaps only while it exists. Otherwise it throws `SwapPermitRevoked`.
 */
export async function swapTables(
  tables: Tables,
  databases: Databases,
  rebuilt: TableIds,
  { permit, ...time }: Time & { permit?: SwapPermit },
): Promise<void> {
  const { model } = databases
  const shadow = shadowOf(databases).model
  for (let attempt = 1; ; attempt++) {
    try {
      // An earlier swap statement whose connection was lost may still run.
      await untilNoSwapRuns(tables, databases, time)
      const live = await readTableIds(tables, databases)
      const left = swappedTables.filter(name => live[name] !== rebuilt[name])
      if (left.length === 0) return
      const pairs = left.map(name => `${model}.${name} AND ${shadow}.${name}`)
      // The permit comes first: the statement ends at the first pair that fails.
      if (permit) pairs.unshift(permitPair(permit, databases))
      await tables.run({ query: `EXCHANGE TABLES ${pairs.join(', ')}` })
    } catch (error) {
      if (permit && (await isRevoked(tables, databases, permit).catch(() => false))) {
        throw new SwapPermitRevoked('another process folds by now', { cause: error })
      }
      if (!(error instanceof TablesError && error.retryable) || attempt === swapAttemptsMax) throw error
      await time.sleep(swapRetryMs)
    }
  }
}

/** How many of the tables with these UUIDs are live. */
export async function countLive(tables: Tables, databases: Databases, rebuilt: TableIds): Promise<number> {
  const live = await readTableIds(tables, databases)
  return swappedTables.filter(name => live[name] === rebuilt[name]).length
}

/** Resolves once no swap statement runs. */
export function untilNoSwapRuns(tables: Tables, { model }: Databases, time: Time): Promise<void> {
  return untilNoneRuns(tables, [`EXCHANGE TABLES ${model}.`], { ...time, msMax: swapMsMax })
}
