/** The SQL files of `contracts/tables`: numbered, with the names of the databases left open. */
import { readdirSync, readFileSync } from 'node:fs'
import { withCampaignFields } from '../../../contracts/tables/campaign-sql.ts'
import { retry } from '../../runtime/async/retry.ts'
import { type Databases, type Tables, TablesError } from '../port.ts'
import { nameDatabases } from '../sql-text.ts'
import { clusterForms } from './cluster.ts'

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

export const tablesDirectory = new URL('../../../contracts/tables/', import.meta.url)
export const generationDirectory = new URL('generation/', tablesDirectory)
export const viewsDirectory = new URL('views/', tablesDirectory)
export const clusterDirectory = new URL('cluster/', tablesDirectory)

// ClickHouse itself did not answer, so the statement may have run.
export const lostConnection = {
  isRetryable: (error: unknown) =>
    error instanceof TablesError && error.retryable && error.type === undefined,
  attemptsMax: 3,
  pauseMsMin: 200,
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

/** The numbered SQL files of a folder in order, as they are. */
export function readStatements(folder: URL): SqlFile[] {
  return readdirSync(folder)
    .filter(name => /^\d{4}-.*\.sql$/.test(name))
    .sort()
    .map(name => ({
      number: Number(name.slice(0, 4)),
      name,
      statements: splitStatements(withCampaignFields(readFileSync(new URL(name, folder), 'utf8'))),
    }))
}

export function forms(statement: string, databases: Databases, options: MigrateOptions): string[] {
  const { cluster } = options
  const statements = cluster === undefined ? [statement] : clusterForms(statement, cluster)
  return statements.map(form => named(form, databases, options))
}

/** With the names of the databases. A view reads as the definer from the start. */
export function named(statement: string, databases: Databases, { viewsDefiner }: MigrateOptions): string {
  const text = nameDatabases(statement, databases)
  if (viewsDefiner === undefined) return text
  return text.replace(/^SQL SECURITY DEFINER$/m, `DEFINER = ${viewsDefiner} SQL SECURITY DEFINER`)
}

// A statement ends with a semicolon at the end of a line. All files keep to that.
function splitStatements(sql: string): string[] {
  return sql
    .split(/;[ \t]*$/m)
    .map(statement => statement.replace(/^\s*--.*$/gm, '').trim())
    .filter(statement => statement !== '')
}

/** Runs a statement that can run again. Its connection may be lost. */
export function run(tables: Pick<Tables, 'run'>, query: string): Promise<void> {
  return retry(() => tables.run({ query }), lostConnection)
}
