/**
 * Generations: everything that is a function of the events stands in the two databases of a generation, `<base>_ledger_7` and
 * `<base>_read_7`. The base database says which generation is current, in the table `generation_log`:
 *
 * | kind | what it says |
 * |---|---|
 * | attempt | a process works on generations under this number. The highest one may promote and drop |
 * | beat | it is alive, and how far it is |
 * | given up | it may not promote any more: its process ended, or said nothing for a minute |
 * | registered | a generation has this number, written before its databases are made |
 * | current | the generation that is read and folded. The row with the highest attempt counts |
 * | dropped | its databases are gone, or will be |
 *
 * Everything that reads names its generation, and follows the log within a second.
 */

import { encodeRows } from './clickhouse/row-binary.ts'
import { around, type BaseDatabases, type Databases, defaultNames, type Tables, TablesError } from './port.ts'

/** The databases of the generation with this number. */
export function generationOf({ base, views }: BaseDatabases, number: number): Databases {
  return { base, views, ledger: `${base}_ledger_${number}`, read: `${base}_read_${number}` }
}

/** The ledgers that each generation has, and those beside the generations. */
export const ledgersOfGeneration = ['campaign_ledger', 'pledge_ledger'] as const
export const ledgersOfBase = ['api_key_ledger', 'account_ledger', 'notice_ledger'] as const

const ofLedger: ReadonlySet<string> = new Set([
  ...ledgersOfGeneration,
  'batch_log',
  'batch_log_shard',
  'positions',
  'fold_progress',
  'fold_epochs',
  'quarantine',
])
const ofRead: ReadonlySet<string> = new Set(['campaigns', 'watermarks'])

/** The table with the name of its database. */
export function qualified(table: string, { base, ledger, read }: Databases): string {
  return `${ofLedger.has(table) ? ledger : ofRead.has(table) ? read : base}.${table}`
}

/** The first generation under the default names. */
export const defaultDatabases = generationOf(defaultNames, 1)

/** Databases of the current generation: they change when another one becomes current. */
export interface FollowedDatabases extends Databases {
  /** 0: not looked up yet. */
  readonly generation: number
  /** The same generation, as a shard of a cluster has it. */
  readonly ofShard: Databases
  /** Looks up which one is current. `stopping`: given by a caller that looks again and again. On a silent connection its look fails after 5 s. */
  follow(tables: Pick<Tables, 'rows'>, stopping?: AbortSignal): Promise<void>
}

/** `named`: the databases of a generation, as the whole of a cluster has them. Default: those of one server. */
export function followedDatabases(names: BaseDatabases, named = generationOf): FollowedDatabases {
  let looks = 0
  /** The look that told the generation. */
  let toldBy = 0
  const ofShard = generationOf(names, 0)
  const followed: FollowedDatabases = {
    ...named(names, 0),
    generation: 0,
    ofShard,
    async follow(tables, stopping) {
      const look = ++looks
      const options = stopping && { signal: AbortSignal.any([stopping, AbortSignal.timeout(lookMsMax)]) }
      const rows: Tables['rows'] = statement => tables.rows(statement, options)
      const generation = await readCurrent({ rows }, followed.base)
      // Several loops of a process look. A look that began earlier may end later, and knows less.
      if (look < toldBy) return
      toldBy = look
      Object.assign(followed, named(names, generation), { generation })
      Object.assign(ofShard, generationOf(names, generation))
    },
  }
  return followed
}

/** The databases as they are now: of one generation, whatever becomes current. */
export function presentOf({ base, ledger, read, views }: Databases): Databases {
  return { base, ledger, read, views }
}

/** The number of the current generation. Throws if there is none. */
export async function readCurrent(tables: Pick<Tables, 'rows'>, base: string): Promise<number> {
  const [row] = await tables
    .rows<{ generation: number }>({
      query: `SELECT argMax(generation, attempt) AS generation FROM ${base}.generation_log WHERE kind = 'current'`,
    })
    .catch(error => {
      if (!isUnknown(error)) throw error
      throw new TablesError(`the tables in ${base} are not made yet: run pledgeview migrate first`, {
        retryable: false,
        type: error.type,
        cause: error,
      })
    })
  if (row && row.generation > 0) return row.generation
  throw new TablesError(
    `${base}.generation_log names no current generation: restore it from a backup, together with the generations`,
    { retryable: false },
  )
}

/** Whether the table or its database is not there: the generation was dropped, or nothing was made yet. */
function isUnknown(error: unknown): error is TablesError {
  return error instanceof TablesError && /^UNKNOWN_(TABLE|DATABASE)$/.test(error.type ?? '')
}

/**
 * Tables for a process that may stand still until its generation is dropped. A statement on tables that are gone, of a generation that is not
 * current any more, fails with an error that passes: another try is made on the current one. `follow` looks up which one that is.
 */
export function tablesOfCurrent(
  tables: Tables,
  databases: Databases,
  follow: () => Promise<unknown>,
): Tables {
  return around(tables, async (work, text) => {
    try {
      return await work()
    } catch (error) {
      if (!isUnknown(error)) throw error
      await follow()
      const { base, ledger, read } = presentOf(databases)
      // By now another generation may have been followed already, so only the statement tells which one it meant.
      const meant =
        text.match(new RegExp(`\\b${base.replace(/_all$/, '')}_(?:ledger|read)_\\d+(?:_all)?\\b`, 'g')) ?? []
      if (meant.every(name => name === ledger || name === read)) throw error
      throw new TablesError('the generation of this statement was dropped, and another one is current', {
        retryable: true,
        cause: error,
      })
    }
  })
}

/** The pause between two looks which generation is current. */
export const followMs = 1_000
const lookMsMax = 5_000

/** The generation log, on the server that has it. */
export interface GenerationLog {
  tables: Pick<Tables, 'rows' | 'run' | 'insert'>
  /** Its database. */
  base: string
}

/** What the log says about a generation. */
export interface LoggedGeneration {
  number: number
  isRegistered: boolean
  /** The current one never is, whatever its rows say: its databases must not go. */
  isDropped: boolean
  /** The attempt that made it the current one, most recently. `null`: it never was. */
  currentAt: number | null
}

export function readGenerations({ tables, base }: GenerationLog): Promise<LoggedGeneration[]> {
  return tables.rows<LoggedGeneration>({
    query: `SELECT generation AS number, toBool(countIf(kind = 'registered')) AS isRegistered,
              toBool(countIf(kind = 'dropped') > 0 AND number != (
                SELECT argMax(generation, attempt) FROM ${base}.generation_log WHERE kind = 'current'
              )) AS isDropped, maxOrNullIf(attempt, kind = 'current') AS currentAt
            FROM ${base}.generation_log WHERE kind IN ('registered', 'current', 'dropped')
            GROUP BY generation ORDER BY generation`,
  })
}

/** Those that have databases. */
export function standingGenerations(all: readonly LoggedGeneration[]): number[] {
  return all.filter(one => one.isRegistered && !one.isDropped).map(({ number }) => number)
}

/** The generation that was current before, if it is kept. */
export function keptGeneration(all: readonly LoggedGeneration[]): number | undefined {
  const [current, ...before] = all
    .filter(({ currentAt }) => currentAt !== null)
    .sort((one, other) => Number(other.currentAt) - Number(one.currentAt))
  return current && standingGenerations(before)[0]
}

const columns = [
  { name: 'kind', type: 'LowCardinality(String)' },
  { name: 'generation', type: 'UInt32' },
  { name: 'attempt', type: 'UInt64' },
  { name: 'run', type: 'String' },
]

/** Writes a row that has no condition. */
export async function writeRow(
  { tables, base }: GenerationLog,
  row: {
    kind: 'given up' | 'registered' | 'current' | 'dropped'
    generation?: number
    attempt?: number
    run?: string
  },
): Promise<void> {
  const { kind, generation = 0, attempt = 0, run = '' } = row
  const rows = encodeRows(columns, [[kind, generation, attempt, run]])
  await tables.insert({ table: `${base}.generation_log`, columns, rows })
}

/** The names of the databases of generations that stand on any of these servers. */
export async function generationDatabases(
  servers: readonly Pick<Tables, 'rows'>[],
  base: string,
): Promise<Set<string>> {
  const look = (server: Pick<Tables, 'rows'>) =>
    server.rows<{ name: string }>({
      query: 'SELECT name FROM system.databases WHERE match(name, {pattern:String}) ORDER BY name',
      query_params: { pattern: `^${base}_(ledger|read)_[0-9]+$` },
    })
  return new Set((await Promise.all(servers.map(look))).flat().map(({ name }) => name))
}

/**
 * Registers the first generation, unless there are others. Databases of generations that no log knows were restored without it, or made by
 * something else.
 */
export async function registerFirst(
  log: GenerationLog,
  { base }: BaseDatabases,
  known: readonly LoggedGeneration[],
  servers: readonly Pick<Tables, 'rows'>[],
): Promise<void> {
  if (known.some(({ isRegistered }) => isRegistered)) return
  const found = await generationDatabases(servers, base)
  if (found.size > 0) {
    throw new Error(
      `there are the databases ${[...found].join(', ')}, and ${base}.generation_log names no current generation: ` +
        `restore ${base} from the same backup, or drop them`,
    )
  }
  await writeRow(log, { kind: 'registered', generation: 1 })
}
