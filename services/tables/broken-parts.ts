/**
 * Finds rows that ClickHouse has set aside. A part whose files are broken when a server starts is moved away (detached), and
 * by default the table continues with fewer rows: pledges are gone, no query fails, and nothing is logged by us.
 *
 * The child server refuses to start instead (services/clickhouse-server/configuration.ts). A server that is not ours may have the
 * default, so every process that writes looks here.
 */
import { answered, type Check } from '../runtime/ops/checks.ts'
import { type Databases, type Tables, TablesError } from './port.ts'

/** Rows of a table were set aside. The message says what to do. */
export class RowsSetAside extends Error {
  override name = 'RowsSetAside'
}

interface BrokenPart {
  database: string
  table: string
  name: string
  reason: string
  path: string
  parts: number
}

/**
 * Throws `RowsSetAside` if a part of the tables is broken and was set aside. `servers`: the server, or each shard, because each knows its own
 * parts alone. `remedy`: the last part of the message, unless the part is of the base database.
 */
export async function checkParts(
  servers: readonly Pick<Tables, 'rows'>[],
  databases: Databases,
  remedy = remedyOfServer,
): Promise<void> {
  const [first] = (await Promise.all(servers.map(server => brokenParts(server, databases)))).flat()
  if (first === undefined) return
  const { database, table, name, reason, path, parts } = first
  const others = parts > 1 ? `, and ${parts - 1} more` : ''
  throw new RowsSetAside(
    `ClickHouse has set aside a part of ${database}.${table}, so its rows are missing: ${path || name} (${reason})${others}. ${database === databases.base ? remedyOfBase(first) : remedy}`,
  )
}

/** `checkParts` as a check of the ops port. */
export function partsCheck(servers: readonly Pick<Tables, 'rows'>[], databases: Databases): Promise<Check> {
  return answered(async () => {
    await checkParts(servers, databases)
    return { ok: true, detail: 'whole' }
  })
}

const remedyOfServer =
  'No event is lost: create the tables again with: pledgeview rebuild. Or repair the files and attach the part again ' +
  '(ALTER TABLE ... ATTACH PART). Set max_suspicious_broken_parts to 0 in the merge_tree section of the server, so that it ' +
  'does not start with missing rows'

function remedyOfBase({ database, table, name }: BrokenPart): string {
  const alter = `ALTER TABLE ${database}.${table}`
  return (
    `A rebuild makes no new tables in ${database}. Repair the files and attach the part again (${alter} ATTACH PART), or restore the ` +
    `table from a backup. Or give its rows up: ${alter} DROP DETACHED PART '${name}' SETTINGS allow_drop_detached = 1`
  )
}

async function brokenParts(
  tables: Pick<Tables, 'rows'>,
  { base, ledger, read }: Databases,
): Promise<BrokenPart[]> {
  try {
    return await tables.rows<BrokenPart>({
      query: `SELECT database, table, name, ifNull(reason, '') AS reason, path, count() OVER () AS parts
              FROM system.detached_parts
              WHERE database IN {names:Array(String)} AND startsWith(ifNull(reason, ''), 'broken')
              ORDER BY table, name
              LIMIT 1`,
      query_params: { names: [base, ledger, read] },
    })
  } catch (error) {
    // Without the right to look, the check is the administrator's.
    if (error instanceof TablesError && error.type === 'ACCESS_DENIED') return []
    throw error
  }
}
