/**
 * Superseded rows of the ledger, of the read tables and of the history, and how to remove them from disk.
 *
 * ClickHouse removes a superseded row when it merges the row's part with the part of the newer row. It merges parts of
 * similar size, so under a live stream a row in a large part may stay for months. Here all parts are merged into one.
 * Rows of one key are never twice in one part, so after that no row is superseded that was superseded before.
 */
import { untilFound } from '../runtime/async/sleep.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { ledgersOfBase, ledgersOfGeneration, qualified } from './generation-log.ts'
import { type CallOptions, type Databases, type Tables, TablesError } from './port.ts'

/** The tables in which a newer row supersedes an older one. */
export const versionedTables = [
  ...ledgersOfGeneration,
  ...ledgersOfBase,
  ...['campaigns', 'api_keys', 'campaign_days'],
] as const

type VersionedTable = (typeof versionedTables)[number]

/** How long ClickHouse keeps the files of merged parts, ms: its own default of `old_parts_lifetime`. */
export const oldPartsMs = 480_000

/** The parts of a table. */
export interface PartsState {
  parts: number
  /** How long ago the oldest part was written, ms. */
  oldestMs: number
}

/** The parts of all versioned tables. A table without rows has no parts. */
export async function readPartsStates(
  tables: Tables,
  { base, ledger, read }: Databases,
  options: CallOptions = {},
): Promise<Map<VersionedTable, PartsState>> {
  const statement = {
    query: `SELECT table, count() AS parts, 1000 * dateDiff('second', min(modification_time), now()) AS oldestMs
            FROM system.parts WHERE active AND database IN {databases:Array(String)} AND table IN {names:Array(String)}
            GROUP BY table`,
    query_params: { databases: [base, ledger, read], names: versionedTables },
  }
  const rows = await tables.rows<PartsState & { table: VersionedTable }>(statement, options)
  return new Map(rows.map(({ table, ...state }) => [table, state]))
}

export interface RewriteOptions extends Pick<Runtime, 'monotonicMs' | 'sleep'> {
  /** How long to try, ms. */
  msMax: number
  signal?: AbortSignal | undefined
}

const lookMs = 250

/**
 * Merges the parts that the table has at this moment into one, while inserts go on. Resolves when none of them is
 * active any more: at once if there is only one. Throws if that takes longer than `msMax`, or if the signal aborts.
 */
export async function rewriteParts(
  tables: Tables,
  databases: Databases,
  table: VersionedTable,
  { msMax, monotonicMs, sleep, signal }: RewriteOptions,
): Promise<void> {
  const options = signal ? { signal } : {}
  const place = qualified(table, databases)
  const activeParts = async () =>
    (await readParts(tables, databases, table, options)).flatMap(({ name, active }) => (active ? name : []))
  const before = await activeParts()
  if (before.length < 2) return
  let failure: TablesError | undefined
  let left = before.length
  const look = async () => {
    signal?.throwIfAborted()
    // Without a merge to do, or while it waits for running merges, ClickHouse reports that and does nothing. A merge
    // that takes longer than the client waits goes on without it.
    failure = (await isRewriting(tables, place, options)) ? undefined : await optimize(tables, place, options)
    const active = new Set(await activeParts())
    left = before.filter(name => active.has(name)).length
    return left === 0 || undefined
  }
  const pause = (ms: number) => sleep(ms, signal)
  if (await untilFound(msMax, look, { monotonicMs, sleep: pause, everyMs: lookMs })) return
  throw new TablesError(
    `${left} parts of ${place} were not merged within ${msMax / 1000} s${failure ? `: ${failure.message}` : ''}`,
    { retryable: true, cause: failure },
  )
}

/** ClickHouse's error, if the merge did not succeed while the client waited for it. */
async function optimize(
  tables: Tables,
  place: string,
  options: CallOptions,
): Promise<TablesError | undefined> {
  const settings = 'optimize_throw_if_noop = 1, optimize_skip_merged_partitions = 1'
  try {
    await tables.run({ query: `OPTIMIZE TABLE ${place} FINAL SETTINGS ${settings}` }, options)
    return undefined
  } catch (error) {
    if (error instanceof TablesError) return error
    throw error
  }
}

async function isRewriting(tables: Tables, place: string, options: CallOptions): Promise<boolean> {
  const statement = {
    query: 'SELECT count() AS statements FROM system.processes WHERE startsWith(query, {start:String})',
    query_params: { start: `OPTIMIZE TABLE ${place} FINAL ` },
  }
  const [found] = await tables.rows<{ statements: number }>(statement, options)
  return (found?.statements ?? 0) > 0
}

/** The parts of a table whose files are on disk. */
export function readParts(
  tables: Tables,
  databases: Databases,
  table: string,
  options: CallOptions = {},
): Promise<{ name: string; active: number }[]> {
  const statement = {
    query: "SELECT name, active FROM system.parts WHERE concat(database, '.', table) = {table:String}",
    query_params: { table: qualified(table, databases) },
  }
  return tables.rows(statement, options)
}
