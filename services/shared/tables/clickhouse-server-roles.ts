/**
 * Roles of a ClickHouse server: `pledgeview_query` for the query service, `pledgeview_analyst` for the data teams, and
 * the user as whom the views read. The SQL stands in `contracts/tables/roles`; all of it can run again.
 */
import { type MigrateOptions, readSqlFiles, type SqlFile } from './migrate.ts'
import { type Databases, type Tables, TablesError } from './port.ts'

export interface RolesOutcome {
  /** Why the server did not let us, in its words; `undefined` where the roles are as they should be. */
  refused: string | undefined
}

const directory = new URL('../../../contracts/tables/roles/', import.meta.url)

// Not ours to manage: we lack the right, or users come from a place that cannot be written.
const refusals: ReadonlySet<string> = new Set([
  'ACCESS_DENIED',
  'ACCESS_STORAGE_READONLY',
  'ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND',
])

/**
 * Makes the roles and gives them their rights; runs after `migrate`, with the same options. Where the server does not
 * allow it, the outcome says so, and an administrator has to run the files. Any other failure is thrown.
 */
export async function createRoles(
  tables: Tables,
  databases: Databases,
  options: MigrateOptions = {},
): Promise<RolesOutcome> {
  try {
    for (const { statements } of readRoles(databases, options)) {
      for (const query of statements) await tables.run({ query })
    }
    return { refused: undefined }
  } catch (error) {
    if (error instanceof TablesError && error.type !== undefined && refusals.has(error.type)) {
      return { refused: error.message }
    }
    throw error
  }
}

/** The files that make the roles, with the database names filled in. */
export function readRoles(databases: Databases, options: MigrateOptions = {}): SqlFile[] {
  return readSqlFiles(directory, databases, options)
}
