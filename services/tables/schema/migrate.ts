/**
 * Brings the tables up to date: runs the numbered SQL files of `contracts/tables` that have not run yet, in the base database and in
 * each generation, and makes the views again.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { withCampaignFields } from '../../../contracts/tables/campaign-sql.ts'
import { retry } from '../../runtime/async/retry.ts'
import { encodeRows } from '../clickhouse/row-binary.ts'
import {
  generationDatabases,
  generationOf,
  readCurrent,
  readGenerations,
  registerFirst,
  standingGenerations,
  writeRow,
} from '../generations.ts'
import { type BaseDatabases, type Databases, type Tables, TablesError } from '../port.ts'
import { clusterForms, distributedDatabases } from './cluster.ts'
import { clusterViews, countsClusterOf } from './cluster-views.ts'

export interface SqlFile {
  number: number
  name: string
  statements: string[]
}

export interface MigrateOptions {
  /** The name of a cluster in the servers' `remote_servers`: makes the tables sharded. This cannot be changed later. */
  cluster?: string | undefined
  /** As whom the views read. Default: as the user who runs this. */
  viewsDefiner?: string | undefined
}

/** The tables of one server, or of all shards of a cluster. */
export interface MigratedTables extends Tables {
  /** Each shard alone. */
  shards?: readonly Tables[]
}

const directory = new URL('../../../contracts/tables/', import.meta.url)
const generationDirectory = new URL('generation/', directory)
export const viewsDirectory = new URL('views/', directory)
const clusterDirectory = new URL('cluster/', directory)

// What must exist before the first file can run: the databases, and the log of the files that have run.
const foundation = [
  'CREATE DATABASE IF NOT EXISTS ${base}',
  'CREATE DATABASE IF NOT EXISTS ${views}',
  `CREATE TABLE IF NOT EXISTS \${base}.migrations
   (number UInt32, name String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'))
ENGINE = MergeTree
ORDER BY number
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
]
const generationFoundation = [
  'CREATE DATABASE IF NOT EXISTS ${ledger}',
  'CREATE DATABASE IF NOT EXISTS ${read}',
]
// The files of generation 7 have the numbers from 7001 on.
const numbersOfGeneration = 1_000

const logColumns = [
  { name: 'number', type: 'UInt32' },
  { name: 'name', type: 'String' },
]

// ClickHouse itself did not answer, so the statement may have run.
const lostConnection = {
  isRetryable: (error: unknown) =>
    error instanceof TablesError && error.retryable && error.type === undefined,
  attemptsMax: 3,
  pauseMsMin: 200,
}

/**
 * Runs the missing files in order, and returns their names. Makes the first generation if there is none. All statements of a file can
 * run again, so a statement whose connection was lost is repeated, and an interrupted migration as a whole. Throws before a row
 * has changed if the tables are those of an earlier version, and before anything has if the servers do not have the second cluster that
 * the views need.
 */
export async function migrate(
  tables: MigratedTables,
  names: BaseDatabases,
  options: MigrateOptions = {},
): Promise<string[]> {
  const { cluster } = options
  if (cluster !== undefined) for (const server of serversOf(tables)) await checkCountsCluster(server, cluster)
  const base = generationOf(names, 0)
  for (const query of foundation.flatMap(statement => forms(statement, base, options)))
    await run(tables, query)
  const applied = await runFiles(tables, base, readSqlFiles(directory, base, options))
  const log = { tables, base: cluster !== undefined ? distributedDatabases(base).base : base.base }
  const known = await readGenerations(log)
  const isFirst = known.every(({ currentAt }) => currentAt === null)
  if (isFirst) await registerFirst(log, names, known, serversOf(tables))
  const current = isFirst ? 1 : await readCurrent(tables, log.base)
  const found = await Promise.all(serversOf(tables).map(one => generationDatabases([one], names.base)))
  if (!isFirst) await mustHaveCurrent(tables, generationOf(names, current), found)
  for (const number of isFirst ? [1] : standingGenerations(known)) {
    const databases = generationOf(names, number)
    // A backup has only the current generation. The files of the others are noted in it, so on that server they would come out empty.
    if (number !== current && !found.every(names => names.has(databases.ledger))) continue
    applied.push(...(await createGeneration(tables, databases, options)))
  }
  if (isFirst) await writeRow(log, { kind: 'current', generation: 1 })
  await pointViews(tables, generationOf(names, await readCurrent(tables, log.base)), options)
  return applied
}

/**
 * Throws if a server has run files of the current generation, and does not have its databases: they would come out empty. A new server
 * in place of a lost one has run none, and gets them.
 */
async function mustHaveCurrent(
  tables: MigratedTables,
  databases: Databases,
  found: readonly ReadonlySet<string>[],
): Promise<void> {
  const { base, ledger, read } = databases
  const files = generationFiles(databases, {})
  for (const [index, server] of serversOf(tables).entries()) {
    const missing = [ledger, read].filter(name => !found[index]?.has(name))
    if (missing.length === 0) continue
    const done = await filesOf(server, `${base}.migrations`)
    if (!files.some(({ number }) => done.has(number))) continue
    throw new Error(
      `${base}.generation_log names a current generation whose databases are not here: ${missing.join(', ')}. Restore them from a backup ` +
        'that has them, or drop all databases and begin anew (deploy/restore.md)',
    )
  }
}

/** Makes the databases of a generation, with their tables and private views, or what is missing of them. */
export async function createGeneration(
  tables: MigratedTables,
  databases: Databases,
  options: MigrateOptions,
): Promise<string[]> {
  for (const query of generationFoundation.flatMap(statement => forms(statement, databases, options))) {
    await run(tables, query)
  }
  const applied = await runFiles(tables, databases, generationFiles(databases, options))
  // Only what stands in its databases. The public views that read from them go on to show the current generation.
  const isOwn = (view: string) => /^CREATE OR REPLACE \w+ (\w+)\./.exec(view)?.[1]?.startsWith(databases.read)
  for (const query of readClusterViews(databases, options).filter(isOwn)) await run(tables, query)
  return applied
}

/** Makes all views again: they show this generation, and read as the definer that the options name. */
export async function pointViews(
  tables: Pick<Tables, 'run'>,
  databases: Databases,
  options: MigrateOptions,
): Promise<void> {
  for (const query of viewStatements(databases, options)) await run(tables, query)
}

function viewStatements(databases: Databases, options: MigrateOptions): string[] {
  if (options.cluster !== undefined) return readClusterViews(databases, options)
  const single = allStatements().filter(statement => statement.startsWith('CREATE OR REPLACE VIEW '))
  return single.map(statement => withDefinerIn(nameDatabases(statement, databases), options))
}

/** Whether every view on this server shows this generation. */
export async function areViewsOf(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  options: MigrateOptions,
): Promise<boolean> {
  const names = viewStatements(databases, options).flatMap(view => {
    const [, database = '', name = ''] = /^CREATE OR REPLACE \w+ (\w+)\.(\w+)/.exec(view) ?? []
    return database.startsWith(databases.read) ? [] : [[database, name] as const]
  })
  const [row] = await tables.rows<{ others: number }>({
    query: `SELECT count() AS others FROM system.tables
            WHERE database IN {databases:Array(String)} AND name IN {names:Array(String)}
              AND arrayExists(name -> name NOT IN {own:Array(String)}, extractAll(create_table_query, {pattern:String}))`,
    query_params: {
      databases: [...new Set(names.map(([database]) => database))],
      names: [...new Set(names.map(([, name]) => name))],
      own: [databases.ledger, databases.read],
      pattern: `\\b${databases.base}_(?:ledger|read)_[0-9]+`,
    },
  })
  return row?.others === 0
}

/** On a cluster, each shard says which files it has run: one may have been away, or may be a new server in place of a lost one. */
async function runFiles(
  tables: MigratedTables,
  databases: Databases,
  files: readonly SqlFile[],
): Promise<string[]> {
  const log = `${databases.base}.migrations`
  const servers = serversOf(tables)
  const done = await Promise.all(servers.map(server => filesOf(server, log)))
  for (const { number, name } of files)
    for (const names of done) mustBeOfThisVersion(databases, name, names.get(number))
  const applied: string[] = []
  for (const { number, name, statements } of files) {
    if (done.every(names => names.has(number))) continue
    for (const query of statements) await run(tables, query)
    const rows = encodeRows(logColumns, [[number, name]])
    const note = (server: Tables) => server.insert({ table: log, columns: logColumns, rows })
    for (const server of servers) await retry(() => note(server), lostConnection)
    applied.push(name)
  }
  return applied
}

function serversOf(tables: MigratedTables): readonly Tables[] {
  return tables.shards ?? [tables]
}

async function filesOf(server: Pick<Tables, 'rows'>, log: string): Promise<Map<number, string>> {
  const rows = await server.rows<{ number: number; name: string }>({
    query: `SELECT DISTINCT number, name FROM ${log}`,
  })
  return new Map(rows.map(({ number, name }) => [number, name]))
}

/** A file that makes other tables than before has another name. */
function mustBeOfThisVersion({ base }: Databases, name: string, done = name): void {
  if (done === name) return
  throw new TablesError(
    `the tables in ${base} were made by an earlier version (${done}; this one has ${name}) and are unchanged. ` +
      'This version needs new tables: see deploy/upgrade.md',
    { retryable: false },
  )
}

function run(tables: Pick<Tables, 'run'>, query: string): Promise<void> {
  return retry(() => tables.run({ query }), lostConnection)
}

/** Throws if the cluster over which people are counted is not there, or has other servers than the cluster. */
async function checkCountsCluster(tables: Pick<Tables, 'rows'>, cluster: string): Promise<void> {
  const counts = countsClusterOf(cluster)
  const [row] = await tables.rows<{ alike: number }>({
    query: `SELECT toUInt8(notEmpty(of_counts) AND of_cluster = of_counts) AS alike FROM (
              SELECT arraySort(groupArrayIf(server, cluster = {cluster:String})) AS of_cluster,
                arraySort(groupArrayIf(server, cluster = {counts:String})) AS of_counts
              FROM (SELECT cluster, (shard_num, host_name, port) AS server FROM system.clusters)
            )`,
    query_params: { cluster, counts },
  })
  if (row?.alike === 1) return
  throw new Error(
    `remote_servers needs a second cluster ${counts} with the shards and servers of ${cluster} (deploy/grow.md, "Shards")`,
  )
}

/**
 * For a command that needs tables of this version, before it begins. Throws if a file has not run yet, and names the files.
 * On a cluster, `databases` are those of each server's own tables.
 */
export async function checkMigrated(tables: Pick<Tables, 'rows'>, databases: Databases): Promise<void> {
  const { base } = databases
  const [log] = await tables.rows<{ logs: number }>({
    query: `SELECT count() AS logs FROM system.tables WHERE database = {base:String} AND name = 'migrations'`,
    query_params: { base },
  })
  const rows = log?.logs
    ? await tables.rows<{ name: string; number: number }>({
        query: `SELECT DISTINCT number, name FROM ${base}.migrations`,
      })
    : []
  const done = new Set(rows.map(row => row.number))
  const missing = readMigrations(databases).filter(({ number }) => !done.has(number))
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name).join(', ')
  throw new Error(`the tables in ${base} are not up to date (${names}): run pledgeview migrate first`)
}

/** The migrations of the base database and of this generation, with the names of the databases filled in. */
export function readMigrations(databases: Databases, options: MigrateOptions = {}): SqlFile[] {
  return [...readSqlFiles(directory, databases, options), ...generationFiles(databases, options)]
}

function generationFiles(databases: Databases, options: MigrateOptions): SqlFile[] {
  const generation = Number(databases.ledger.slice(databases.ledger.lastIndexOf('_') + 1))
  return readSqlFiles(generationDirectory, databases, options).map(file => ({
    ...file,
    number: generation * numbersOfGeneration + file.number,
    name: `generation ${generation}, ${file.name}`,
  }))
}

/** The statements that create the views of a cluster, with the names of the databases filled in. On one server: none. */
export function readClusterViews(databases: Databases, { cluster, viewsDefiner }: MigrateOptions): string[] {
  if (cluster === undefined) return []
  const [parts = [], wholes = [], people = []] = readStatements(clusterDirectory).map(file => file.statements)
  const all = { migrations: allStatements(), parts, wholes, people }
  return clusterViews(all, cluster, viewsDefiner).map(statement => nameDatabases(statement, databases))
}

/**
 * The numbered SQL files of a folder in order, with the names of the databases filled in, and in their form on a
 * cluster if the options name one.
 */
export function readSqlFiles(folder: URL, databases: Databases, options: MigrateOptions): SqlFile[] {
  return readStatements(folder).map(file => ({
    ...file,
    statements: file.statements.flatMap(statement => forms(statement, databases, options)),
  }))
}

/** All statements of one server, in order, as they are. */
function allStatements(): string[] {
  const folders = [directory, generationDirectory, viewsDirectory]
  return folders.flatMap(readStatements).flatMap(({ statements }) => statements)
}

/** The numbered SQL files of a folder in order, as they are. */
function readStatements(folder: URL): SqlFile[] {
  return readdirSync(folder)
    .filter(name => /^\d{4}-.*\.sql$/.test(name))
    .sort()
    .map(name => ({
      number: Number(name.slice(0, 4)),
      name,
      statements: splitStatements(withCampaignFields(readFileSync(new URL(name, folder), 'utf8'))),
    }))
}

/** Fills `${base}`, `${ledger}`, `${read}` and `${views}` in SQL text. */
export function nameDatabases(sql: string, databases: Databases): string {
  return sql.replace(/\$\{(base|ledger|read|views)\}/g, (_, name: keyof Databases) => databases[name])
}

function forms(statement: string, databases: Databases, options: MigrateOptions): string[] {
  const { cluster } = options
  const statements = cluster === undefined ? [statement] : clusterForms(statement, cluster)
  return statements.map(form => withDefinerIn(nameDatabases(form, databases), options))
}

/** A view reads as the definer from the start. */
function withDefinerIn(statement: string, { viewsDefiner }: MigrateOptions): string {
  if (viewsDefiner === undefined) return statement
  return statement.replace(/^SQL SECURITY DEFINER$/m, `DEFINER = ${viewsDefiner} SQL SECURITY DEFINER`)
}

// A statement ends with a semicolon at the end of a line. All files keep to that.
function splitStatements(sql: string): string[] {
  return sql
    .split(/;[ \t]*$/m)
    .map(statement => statement.replace(/^\s*--.*$/gm, '').trim())
    .filter(statement => statement !== '')
}
