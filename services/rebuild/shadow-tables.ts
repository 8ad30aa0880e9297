/**
 * The shadow tables: a second set of the model's tables in a database beside it. While a rebuild runs, they are the ones that
 * it builds. After the swap, they are the ones that were live before.
 *
 * The swap covers the tables that are a function of the events: ledgers and read tables. What describes processes (batch
 * log, fold log, epochs) stays where it is.
 */
import { migrate } from '../shared/tables/migrate.ts'
import { type Databases, type Tables, TablesError } from '../shared/tables/port.ts'
import { type Time, untilNoneRuns } from '../shared/tables/running-statements.ts'
import { isRevoked, permitPair, type SwapPermit } from './swap-permit.ts'

// Ledgers come first, so that a reader never joins campaigns with an older ledger.
export const swappedTables = [
  'campaign_ledger',
  'pledge_ledger',
  'api_key_ledger',
  'campaigns',
  'api_keys',
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

/** Creates the shadow tables that do not exist yet. */
export async function createShadow(tables: Tables, databases: Databases): Promise<void> {
  await migrate(tables, shadowOf(databases))
}

export async function hasShadow(tables: Tables, databases: Databases): Promise<boolean> {
  const [found] = await tables.rows<{ databases: number }>({
    query: 'SELECT count() AS databases FROM system.databases WHERE name = {name:String}',
    query_params: { name: shadowOf(databases).model },
  })
  return (found?.databases ?? 0) > 0
}

/** Drops the shadow tables, if there are any. */
export async function dropShadow(tables: Tables, databases: Databases): Promise<void> {
  const { model, views } = shadowOf(databases)
  await tables.run({ query: `DROP DATABASE IF EXISTS ${views} SYNC` })
  await tables.run({ query: `DROP DATABASE IF EXISTS ${model} SYNC` })
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
