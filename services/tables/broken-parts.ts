/**
 * Finds rows that ClickHouse has set aside. A part whose files are broken when a server starts is moved away (detached), and
 * by default the table continues with fewer rows: pledges are gone, no query fails, and nothing is logged by us.
 *
 * The child server refuses to start instead (services/clickhouse-server/configuration.ts). A server that is not ours may have the
 * default, so every process that writes looks here.
 */
import { answered, type Check } from '../runtime/ops/checks.ts'
import { ledgersOfBase } from './generation-log.ts'
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
 * parts alone. `remedy`: the last part of the message. Default: what helps on a server.
 */
export async function checkParts(
  servers: readonly Pick<Tables, 'rows'>[],
  databases: Databases,
  remedy?: string,
): Promise<void> {
  const [first] = (await Promise.all(servers.map(server => brokenParts(server, databases)))).flat()
  if (first === undefined) return
  const { database, table, name, reason, path, parts } = first
  const others = parts > 1 ? `, and ${parts - 1} more` : ''
  throw new RowsSetAside(
    `ClickHouse has set aside a part of ${database}.${table}, so its rows are missing: ${path || name} (${reason})${others}. ${remedy ?? (database === databases.base ? remedyOfBase(first) : remedyOfServer)}`,
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

// Every generation writes these again: the log has what they have. Of the rejects, only whether they are settled is lost.
const inLog: ReadonlySet<string> = new Set([...ledgersOfBase, 'api_keys', 'rejects'])
// With fewer rows, another generation could be current, or other secrets be accepted.
const indispensable: ReadonlySet<string> = new Set(['generation_log', 'identity', 'migrations'])

function remedyOfBase({ database, table, name }: BrokenPart): string {
  const alter = `ALTER TABLE ${database}.${table}`
  const drop = `${alter} DROP DETACHED PART '${name}' SETTINGS allow_drop_detached = 1`
  if (inLog.has(table))
    return `No event is lost: read the log again with: pledgeview rebuild. Only then drop the part: ${drop}`
  const repair = `Repair the files and attach the part again (${alter} ATTACH PART), or restore the table from a backup`
  return indispensable.has(table)
    ? repair
    : `No rebuild writes them again. ${repair}. Or give them up: ${drop}`
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
