/** Brings the tables up to date: runs the numbered SQL files of `contracts/tables` that have not run yet. */
import { readdirSync, readFileSync } from 'node:fs'
import { withCampaignFields } from '../../contracts/tables/campaign-sql.ts'
import { retry } from '../runtime/retry.ts'
import { clusterViews, countsClusterOf } from './cluster-views.ts'
import { type Databases, type Tables, TablesError } from './port.ts'
import { type Replicated, replicatedAlone, replicatedForms } from './replicated.ts'
import { encodeRows } from './row-binary.ts'

export interface SqlFile {
  number: number
  name: string
  statements: string[]
}

export interface MigrateOptions {
  /** Makes the tables replicated and sharded, on every server of a cluster. This cannot be changed later. */
  replicated?: Replicated | undefined
  /** As whom the views of a cluster read. Default: as the user who runs this. */
  viewsDefiner?: string | undefined
  /** Makes the tables of one server replicated: the only replica of a shard. Their paths in Keeper end in this. */
  replicatedAlone?: string | undefined
}

const directory = new URL('../../contracts/tables/', import.meta.url)
const clusterDirectory = new URL('cluster/', directory)

// What must exist before the first file can run: the databases, and the log of the files that have run.
const foundation = [
  'CREATE DATABASE IF NOT EXISTS ${model}',
  'CREATE DATABASE IF NOT EXISTS ${views}',
  `CREATE TABLE IF NOT EXISTS \${model}.migrations
   (number UInt32, name String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'))
ENGINE = MergeTree
ORDER BY number
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
]

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
 * Runs the missing files in order, and returns their names. All statements of a file can run again, so a statement whose
 * connection was lost is repeated, and an interrupted migration as a whole. On a cluster, it then creates all views again.
 * Throws before anything has changed if the servers do not have the second cluster that the views need, or if the tables were made by
 * a version whose files were others.
 */
export async function migrate(
  tables: Tables,
  databases: Databases,
  options: MigrateOptions = {},
): Promise<string[]> {
  if (options.replicated) await checkCountsCluster(tables, options.replicated.cluster)
  const run = (query: string) => retry(() => tables.run({ query }), lostConnection)
  for (const query of foundation.flatMap(statement => forms(statement, databases, options))) await run(query)
  const log = `${databases.model}.migrations`
  const done = await tables.rows<AppliedFile>({ query: `SELECT DISTINCT number, name FROM ${log}` })
  const files = readMigrations(databases, options)
  refuseOthers(databases, done, files)
  const applied: string[] = []
  for (const migration of files) {
    if (done.some(({ number }) => number === migration.number)) continue
    for (const query of migration.statements) await run(query)
    const rows = encodeRows(logColumns, [[migration.number, migration.name]])
    await retry(() => tables.insert({ table: log, columns: logColumns, rows }), lostConnection)
    applied.push(migration.name)
  }
  for (const query of readClusterViews(databases, options)) await run(query)
  return applied
}

type AppliedFile = Pick<SqlFile, 'number' | 'name'>

/** Throws if a file with another name has run under the number of one of these. */
function refuseOthers(
  { model }: Databases,
  done: readonly AppliedFile[],
  files: readonly AppliedFile[],
): void {
  for (const { number, name } of files) {
    const other = done.find(applied => applied.number === number && applied.name !== name)
    if (!other) continue
    throw new Error(
      `the tables in ${model} were made by an earlier version (${other.name}, and not ${name}). Let the projector read the whole log ` +
        'into new ones: name other databases, or in the embedded form move `tables` out of the data directory',
    )
  }
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
    `remote_servers needs a second cluster ${counts} with the shards and servers of ${cluster} (deploy/README.md, Scaling)`,
  )
}

/**
 * For a command that needs tables of this version, before it begins. Throws if a file has not run yet, and names the files.
 * On a cluster, `databases` are those of each server's own tables.
 */
export async function checkMigrated(tables: Pick<Tables, 'rows'>, databases: Databases): Promise<void> {
  const { model } = databases
  const [log] = await tables.rows<{ logs: number }>({
    query: `SELECT count() AS logs FROM system.tables WHERE database = {model:String} AND name = 'migrations'`,
    query_params: { model },
  })
  const rows = log?.logs
    ? await tables.rows<{ number: number }>({ query: `SELECT DISTINCT number FROM ${model}.migrations` })
    : []
  const done = new Set(rows.map(row => row.number))
  const missing = readMigrations(databases).filter(({ number }) => !done.has(number))
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name).join(', ')
  throw new Error(`the tables in ${model} are not up to date (${names}): run pledgeview migrate first`)
}

/** The migrations in order, with the names of the databases filled in. */
export function readMigrations(databases: Databases, options: MigrateOptions = {}): SqlFile[] {
  return readSqlFiles(directory, databases, options)
}

/** The statements that create the views of a cluster, with the names of the databases filled in. On one server: none. */
export function readClusterViews(
  databases: Databases,
  { replicated, viewsDefiner }: MigrateOptions,
): string[] {
  if (!replicated) return []
  const [parts = [], wholes = [], people = []] = readStatements(clusterDirectory).map(file => file.statements)
  const migrations = readStatements(directory).flatMap(({ statements }) => statements)
  const all = { migrations, parts, wholes, people }
  return clusterViews(all, replicated.cluster, viewsDefiner).map(statement =>
    nameDatabases(statement, databases),
  )
}

/**
 * The numbered SQL files of a folder in order, with the names of the databases filled in, and in their replicated
 * form if the options ask for it.
 */
export function readSqlFiles(folder: URL, databases: Databases, options: MigrateOptions): SqlFile[] {
  return readStatements(folder).map(file => ({
    ...file,
    statements: file.statements.flatMap(statement => forms(statement, databases, options)),
  }))
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

/** Fills `${model}` and `${views}` in SQL text. */
export function nameDatabases(sql: string, databases: Databases): string {
  return sql.replaceAll('${model}', databases.model).replaceAll('${views}', databases.views)
}

function forms(statement: string, databases: Databases, options: MigrateOptions): string[] {
  const { replicated, replicatedAlone: id } = options
  const single = id === undefined ? statement : replicatedAlone(statement, id)
  const statements = replicated ? replicatedForms(statement, replicated) : [single]
  return statements.map(form => nameDatabases(form, databases))
}

// A statement ends with a semicolon at the end of a line. All files keep to that.
function splitStatements(sql: string): string[] {
  return sql
    .split(/;[ \t]*$/m)
    .map(statement => statement.replace(/^\s*--.*$/gm, '').trim())
    .filter(statement => statement !== '')
}
