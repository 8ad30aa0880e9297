/**
 * Brings the tables up to date: runs the numbered SQL files of `contracts/tables` that have not run yet, in the base database and in
 * each generation, and makes the views again.
 */
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
} from '../generation-log.ts'
import { type BaseDatabases, type Databases, type Tables, TablesError } from '../port.ts'
import { distributedDatabases } from './cluster.ts'
import { countsClusterOf } from './cluster-views.ts'
import {
  forms,
  generationDirectory,
  lostConnection,
  type MigrateOptions,
  readSqlFiles,
  run,
  type SqlFile,
  tablesDirectory,
} from './sql-files.ts'
import { pointViews, viewStatements } from './views.ts'

/** The tables of one server, or of all shards of a cluster. */
export interface MigratedTables extends Tables {
  /** Each shard alone. */
  shards?: readonly Tables[]
}

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
  const applied = await runFiles(tables, base, readSqlFiles(tablesDirectory, base, options))
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
  const shown = generationOf(names, await readCurrent(tables, log.base))
  if (!(await areOfLaterVersion(tables, names.base, readMigrations(shown))))
    await pointViews(tables, shown, options)
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
  const files = generationFiles(databases, options)
  const applied = await runFiles(tables, databases, files)
  if (await areOfLaterVersion(tables, databases.base, files)) return applied
  // Only what stands in its databases, also if a field was added since. The public views go on to show the current generation.
  const isOwn = (view: string) => /^CREATE OR REPLACE \w+ (\w+)\./.exec(view)?.[1]?.startsWith(databases.read)
  for (const query of viewStatements(databases, options).filter(isOwn)) await run(tables, query)
  return applied
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

/**
 * Whether a later version has migrated the tables of these files on every server. Then its views stay: its processes may still run, and read
 * columns that the views of this version do not have. This version can read the later views. No file is ever taken away, so one that this
 * version does not know is of a later version.
 */
async function areOfLaterVersion(
  tables: MigratedTables,
  base: string,
  files: readonly SqlFile[],
): Promise<boolean> {
  const rangeOf = (number: number) => Math.floor(number / numbersOfGeneration)
  const known = new Set(files.map(({ number }) => number))
  const ranges = new Set([...known].map(rangeOf))
  const done = await Promise.all(serversOf(tables).map(server => filesOf(server, `${base}.migrations`)))
  return done.every(names =>
    [...names.keys()].some(number => !known.has(number) && ranges.has(rangeOf(number))),
  )
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
 * For a process that needs tables of this version, before it begins. Throws if a file has not run yet, and names the files.
 * On a cluster, `databases` are those of each server's own tables.
 */
export async function checkMigrated(tables: Pick<Tables, 'rows'>, databases: Databases): Promise<void> {
  const { base } = databases
  const [log] = await tables.rows<{ logs: number }>({
    query: `SELECT count() AS logs FROM system.tables WHERE database = {base:String} AND name = 'migrations'`,
    query_params: { base },
  })
  const done = log?.logs ? await filesOf(tables, `${base}.migrations`) : new Map<number, string>()
  const missing = readMigrations(databases).filter(({ number }) => !done.has(number))
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name).join(', ')
  throw new Error(`the tables in ${base} are not up to date (${names}): run pledgeview migrate first`)
}

/** The migrations of the base database and of this generation, with the names of the databases filled in. */
export function readMigrations(databases: Databases, options: MigrateOptions = {}): SqlFile[] {
  return [...readSqlFiles(tablesDirectory, databases, options), ...generationFiles(databases, options)]
}

function generationFiles(databases: Databases, options: MigrateOptions): SqlFile[] {
  const generation = Number(databases.ledger.slice(databases.ledger.lastIndexOf('_') + 1))
  return readSqlFiles(generationDirectory, databases, options).map(file => ({
    ...file,
    number: generation * numbersOfGeneration + file.number,
    name: `generation ${generation}, ${file.name}`,
  }))
}
