/**
 * Roles of a ClickHouse server: `pledgeview_query` for the query service, `pledgeview_analyst` for the data teams,
 * and the user that the views read as. The SQL is in `contracts/tables/roles`. All of it can run again.
 *
 * A server whose users come from a file cannot create roles. There the same grants and bounds go into that file:
 * `readRole` returns them.
 */

import { type Databases, type Tables, TablesError } from '../port.ts'
import type { MigratedTables } from './migrate.ts'
import { type MigrateOptions, readSqlFiles, type SqlFile } from './sql-files.ts'

export interface RolesOutcome {
  /** The server's reason if it refused; `undefined` if the roles are complete. */
  refused: string | undefined
  /** With which `migrate` makes views that read as the definer, if it lacks nothing. */
  options: MigrateOptions
  /** The rights that the definer does not have on some server, as `GRANT SELECT ON database.table`. */
  definerLacks: string[]
}

export const definerUser = 'pledgeview_definer'
const directory = new URL('../../../contracts/tables/roles/', import.meta.url)
// On a cluster these files run after those of the same folder above.
const clusterDirectory = new URL('../cluster/roles/', directory)

// Errors that mean that the roles are not ours to manage: we lack the right, or the users are in a read-only place.
const refusals: ReadonlySet<string> = new Set([
  'ACCESS_DENIED',
  'ACCESS_STORAGE_READONLY',
  'ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND',
])

/**
 * Creates the roles and their grants, before `migrate` makes what they are for: views would otherwise read with all rights of the user
 * who makes them. If the server refuses, the outcome says so, and an administrator has to create them. Any other failure is thrown.
 */
export async function createRoles(
  tables: Pick<MigratedTables, 'rows' | 'run' | 'shards'>,
  databases: Databases,
  options: MigrateOptions = {},
): Promise<RolesOutcome> {
  const usable = { ...options, viewsDefiner: definerUser }
  try {
    for (const { statements } of readRoles(databases, options))
      for (const query of statements) await tables.run({ query })
    return { refused: undefined, options: usable, definerLacks: [] }
  } catch (error) {
    const refused = refusalOf(error)
    if (refused === undefined) throw error
    // The views are made on every shard.
    const servers = tables.shards ?? [tables]
    const lacks = await Promise.all(servers.map(server => lacksOfDefiner(server, databases, options)))
    const definerLacks = [...new Set(lacks.flat())]
    return { refused, options: definerLacks.length > 0 ? options : usable, definerLacks }
  }
}

/** The files that create the roles, with the names of the databases filled in. */
export function readRoles(databases: Databases, options: MigrateOptions = {}): SqlFile[] {
  const folders = options.cluster === undefined ? [directory] : [directory, clusterDirectory]
  return folders.flatMap(folder => readSqlFiles(folder, databases, options))
}

/** A setting of a role, and the range in which a query may change it. Without a range a query cannot change it. */
export interface RoleSetting {
  name: string
  value: string
  range?: { min: string; max: string }
}

export type Role = ReturnType<typeof readRole>

/** The grants and settings of a role or a user, from the files. On a cluster they are the same on each server. */
export function readRole(name: string, databases: Databases, options: MigrateOptions = {}) {
  const statements = readRoles(databases, options).flatMap(file => file.statements)
  const set = new RegExp(`^(?:CREATE ROLE IF NOT EXISTS|ALTER USER) ${name}\\b`)
  const made = statements.find(statement => set.test(statement)) ?? ''
  const granted = new RegExp(`^GRANT (.*) TO ${name}$`)
  return {
    /** As `GRANT SELECT ON database.table`. */
    grants: statements.flatMap(statement => {
      const right = granted.exec(statement)?.[1]
      return right === undefined ? [] : [`GRANT ${right}`]
    }),
    settings: [...made.matchAll(/(\w+) = (?:'([^']*)'|(\d+)) (?:CONST|MIN (\S+) MAX ([^\s,]+))/g)].map(
      ([, setting = '', text, number, min, max]): RoleSetting => ({
        name: setting,
        value: text ?? number ?? '',
        ...(min !== undefined && max !== undefined && { range: { min, max } }),
      }),
    ),
    /** Settings that a query may change although the role has `readonly = 1`. */
    changeable: [...made.matchAll(/(\w+) CHANGEABLE_IN_READONLY/g)].map(([, setting = '']) => setting),
  }
}

/** The rights that the definer needs and does not have. The views would fail if they read as it without them. */
async function lacksOfDefiner(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  options: MigrateOptions,
): Promise<string[]> {
  const { grants } = readRole(definerUser, databases, options)
  try {
    const granted = await tables.rows<{ database: string | null; table: string | null }>({
      query: `SELECT concat(database, if(is_wildcard, '*', '')) AS database, table FROM system.grants
              WHERE user_name = {name:String} AND access_type = 'SELECT' AND NOT is_partial_revoke AND column IS NULL`,
      query_params: { name: definerUser },
    })
    return grants.filter(grant => {
      const [, database, table] = /^GRANT SELECT ON (\w+\*?)\.(\w+|\*)$/.exec(grant) ?? []
      return !granted.some(
        one =>
          (one.database ?? database) === database && (one.table ?? table) === table && database !== undefined,
      )
    })
  } catch (error) {
    if (refusalOf(error) === undefined) throw error
    return grants
  }
}

/** The server's message if it refused because of missing rights. */
function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof TablesError) || error.type === undefined) return undefined
  return refusals.has(error.type) ? error.message : undefined
}
