/** The views: made again as a whole, so that they show one generation. */
import type { Databases, Tables } from '../port.ts'
import { clusterViews } from './cluster-views.ts'
import {
  clusterDirectory,
  generationDirectory,
  type MigrateOptions,
  named,
  readStatements,
  run,
  tablesDirectory,
  viewsDirectory,
} from './sql-files.ts'

/** Makes all views again: they show this generation, and read as the definer that the options name. */
export async function pointViews(
  tables: Pick<Tables, 'run'>,
  databases: Databases,
  options: MigrateOptions,
): Promise<void> {
  for (const query of viewStatements(databases, options)) await run(tables, query)
}

/** The statements that make all views, with the names of the databases filled in. */
export function viewStatements(databases: Databases, options: MigrateOptions): string[] {
  if (options.cluster !== undefined) return readClusterViews(databases, options)
  const single = allStatements().filter(statement => statement.startsWith('CREATE OR REPLACE VIEW '))
  return single.map(statement => named(statement, databases, options))
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

/** The statements that create the views of a cluster, with the names of the databases filled in. On one server: none. */
export function readClusterViews(databases: Databases, options: MigrateOptions): string[] {
  const { cluster } = options
  if (cluster === undefined) return []
  const [parts = [], wholes = [], people = []] = readStatements(clusterDirectory).map(file => file.statements)
  const all = { migrations: allStatements(), parts, wholes, people }
  return clusterViews(all, cluster).map(statement => named(statement, databases, options))
}

/** All statements of one server, in order, as they are. */
function allStatements(): string[] {
  const folders = [tablesDirectory, generationDirectory, viewsDirectory]
  return folders.flatMap(readStatements).flatMap(({ statements }) => statements)
}
