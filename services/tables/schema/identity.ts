/**
 * The settings that all processes on the same tables must share. A process with other settings is refused.
 *
 * The first process that writes decides. If two begin at once with different values, both find two values and both
 * are refused.
 */
import { hash } from 'node:crypto'
import { encodeRows } from '../clickhouse/row-binary.ts'
import type { Databases, Tables } from '../port.ts'

/** The settings that the tables depend on, as this process has them. Secrets are stored as fingerprints. */
export interface Identity {
  PLEDGEVIEW_BACKER_KEY?: string
  PLEDGEVIEW_KEY_PEPPER?: string
  PLEDGEVIEW_PORTAL_KEY?: string
  PLEDGEVIEW_PLATFORM_CURRENCY?: string
}

const columns = [
  { name: 'setting', type: 'String' },
  { name: 'fingerprint', type: 'String' },
]

interface Row {
  setting: string
  fingerprint: string
}

/**
 * For a process that writes: stores the settings that are not stored yet. Throws if another value
 * is stored.
 */
export async function holdTablesIdentity(
  tables: Pick<Tables, 'rows' | 'insert'>,
  databases: Databases,
  identity: Identity,
): Promise<void> {
  const held = new Set((await checkTablesIdentity(tables, databases, identity)).map(row => row.setting))
  const missing = rowsOf(identity).filter(([setting]) => !held.has(setting))
  if (missing.length === 0) return
  await insertRows(tables, databases, missing)
  await checkTablesIdentity(tables, databases, identity)
}

/** For a process that only reads. Throws if a stored setting differs from this process's. */
export async function checkTablesIdentity(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  identity: Identity,
): Promise<Row[]> {
  const held = await tables.rows<Row>({
    query: `SELECT DISTINCT setting, fingerprint FROM ${databases.base}.identity`,
  })
  const own = new Map(rowsOf(identity))
  for (const { setting, fingerprint } of held) {
    if (!own.has(setting) || own.get(setting) === fingerprint) continue
    throw new Error(
      `${setting} differs from the value that the tables in ${databases.base} began with; restore that value, or use another database`,
    )
  }
  return held
}

/**
 * Names the tables: by the moment at which their first generation was registered. It differs between two deployments that project the same
 * log, so that their query processes share no cached answers through one Redis.
 */
export async function readTablesId(tables: Pick<Tables, 'rows'>, { base }: Databases): Promise<string> {
  const [row] = await tables.rows<{ id: string }>({
    query: `SELECT toString(toUnixTimestamp64Milli(minIf((generation, written_at), kind = 'registered').2)) AS id
            FROM ${base}.generation_log`,
  })
  return row?.id ?? ''
}

const purgeSetting = 'purge'

/** How often query processes look for a purge, and for how long a look may take, ms. One that hangs must not keep the next one waiting. */
export const purgeLookMs = 1_000
export const purgeLookMsMax = 10_000

/** For a purge: query processes forget what they keep of campaigns (query/forgetting.ts). `at`: ISO 8601. */
export async function writePurge(
  tables: Pick<Tables, 'insert'>,
  databases: Databases,
  at: string,
): Promise<void> {
  await insertRows(tables, databases, [[purgeSetting, at]])
}

/** How many purges there were. Tables that went back may have had fewer. */
export async function readPurges(tables: Pick<Tables, 'rows'>, { base }: Databases): Promise<number> {
  const [row] = await tables.rows<{ purges: number }>({
    query: `SELECT toUInt32(count()) AS purges FROM ${base}.identity WHERE setting = '${purgeSetting}'`,
  })
  return row?.purges ?? 0
}

function insertRows(
  tables: Pick<Tables, 'insert'>,
  { base }: Databases,
  rows: [setting: string, fingerprint: string][],
): Promise<void> {
  return tables.insert({ table: `${base}.identity`, columns, rows: encodeRows(columns, rows) })
}

function rowsOf(identity: Identity): [setting: string, fingerprint: string][] {
  return Object.entries(identity).map(([setting, value]) => [
    setting,
    setting === 'PLEDGEVIEW_PLATFORM_CURRENCY' ? value : fingerprintOf(value),
  ])
}

/** Shows whether two configured secrets are the same, and nothing more. */
function fingerprintOf(configured: string): string {
  return hash('sha256', `pledgeview ${configured}`, 'hex').slice(0, 16)
}
