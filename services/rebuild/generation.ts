/**
 * Generations of the tables. The live one is in the model's database; another is in its shadow, a database of the same
 * tables: first the one that is being built, and after the exchange the one that was live before.
 *
 * Exchanged is what is a function of the events: ledger and read tables. What processes did (batch log, fold log,
 * epochs) stays where it is.
 */
import { migrate } from '../shared/tables/migrate.ts'
import { type Databases, type Tables, TablesError } from '../shared/tables/port.ts'

// Ledgers first: what a reader joins to the campaigns is never older than they are.
export const generationTables = [
  'campaign_ledger',
  'pledge_ledger',
  'api_key_ledger',
  'campaigns',
  'api_keys',
] as const

const exchangeAttemptsMax = 10
const exchangePauseMs = 500
const exchangeMsMax = 60_000

export type GenerationTable = (typeof generationTables)[number]

/** What tells a table from the one that is exchanged with it: ClickHouse's UUIDs. */
export type TableIds = Readonly<Partial<Record<GenerationTable, string>>>

/** Where the other generation is. */
export function shadowOf({ model, views }: Databases): Databases {
  return { model: `${model}_shadow`, views: `${views}_shadow` }
}

/** Makes the shadow's tables where they are missing. */
export async function makeShadow(tables: Tables, databases: Databases): Promise<void> {
  await migrate(tables, shadowOf(databases))
}

export async function hasShadow(tables: Tables, databases: Databases): Promise<boolean> {
  const [found] = await tables.rows<{ databases: number }>({
    query: 'SELECT count() AS databases FROM system.databases WHERE name = {name:String}',
    query_params: { name: shadowOf(databases).model },
  })
  return (found?.databases ?? 0) > 0
}

/** Drops the shadow with all that is in it, where there is one. */
export async function dropShadow(tables: Tables, databases: Databases): Promise<void> {
  const { model, views } = shadowOf(databases)
  await tables.run({ query: `DROP DATABASE IF EXISTS ${views} SYNC` })
  await tables.run({ query: `DROP DATABASE IF EXISTS ${model} SYNC` })
}

/** The UUIDs of the tables in this database. */
export async function readTableIds(tables: Tables, { model }: Databases): Promise<TableIds> {
  const rows = await tables.rows<{ name: GenerationTable; id: string }>({
    query: `SELECT name, toString(uuid) AS id FROM system.tables
            WHERE database = {model:String} AND name IN {names:Array(String)}`,
    query_params: { model, names: [...generationTables] },
  })
  return Object.fromEntries(rows.map(({ name, id }) => [name, id]))
}

/**
 * Puts the tables with these UUIDs into the live database, in one statement, as far as they are not there already. So it
 * can be repeated when it was cut off. `tables` must not try again by itself: exchanged twice is not exchanged.
 */
export async function exchange(
  tables: Tables,
  databases: Databases,
  rebuilt: TableIds,
  sleep: WaitOptions['sleep'],
): Promise<void> {
  const { model } = databases
  const shadow = shadowOf(databases).model
  for (let attempt = 1; ; attempt++) {
    try {
      // One that was lost sight of may still be at it.
      await untilNoExchangeRuns(tables, databases, sleep)
      const live = await readTableIds(tables, databases)
      const left = generationTables.filter(name => live[name] !== rebuilt[name])
      if (left.length === 0) return
      const pairs = left.map(name => `${model}.${name} AND ${shadow}.${name}`)
      await tables.run({ query: `EXCHANGE TABLES ${pairs.join(', ')}` })
    } catch (error) {
      if (!(error instanceof TablesError && error.retryable) || attempt === exchangeAttemptsMax) throw error
      await sleep(exchangePauseMs)
    }
  }
}

/** How many of the tables with these UUIDs are live. */
export async function countLive(tables: Tables, databases: Databases, rebuilt: TableIds): Promise<number> {
  const live = await readTableIds(tables, databases)
  return generationTables.filter(name => live[name] === rebuilt[name]).length
}

/** Resolves once no statement runs that inserts into the read tables of this database. Throws after `msMax`. */
export function untilNoFoldRuns(tables: Tables, { model }: Databases, wait: WaitOptions): Promise<void> {
  return untilNoneRuns(tables, [`INSERT INTO ${model}.campaigns `, `INSERT INTO ${model}.api_keys `], wait)
}

/** The same for the exchange itself. */
export function untilNoExchangeRuns(
  tables: Tables,
  { model }: Databases,
  sleep: WaitOptions['sleep'],
): Promise<void> {
  return untilNoneRuns(tables, [`EXCHANGE TABLES ${model}.`], { msMax: exchangeMsMax, sleep })
}

export interface WaitOptions {
  msMax: number
  sleep: (ms: number) => Promise<void>
}

/** Who has lost sight of a statement learns here that it has ended: no statement runs that holds one of these texts. */
async function untilNoneRuns(
  tables: Tables,
  texts: readonly string[],
  { msMax, sleep }: WaitOptions,
): Promise<void> {
  const deadline = performance.now() + msMax
  for (;;) {
    const [running] = await tables.rows<{ statements: number }>({
      // The question itself is running too.
      query: `SELECT count() AS statements FROM system.processes
              WHERE multiSearchAny(query, {texts:Array(String)}) AND position(query, 'system.processes') = 0`,
      query_params: { texts: [...texts] },
    })
    if (running?.statements === 0) return
    if (performance.now() > deadline) throw new Error(`a statement still runs after ${msMax} ms: ${texts[0]}`)
    await sleep(100)
  }
}
