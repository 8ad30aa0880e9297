/**
 * Holds the settings that all processes on the same tables have to share: whoever comes with others is refused.
 *
 * The first that writes decides. Two that begin at once with different values both find two and are both refused.
 */
import { fingerprintOf } from '../credentials.ts'
import type { Databases, Tables } from './port.ts'

/** The settings that the tables depend on, by what they are to this process. Secrets are kept as fingerprints. */
export interface Identity {
  PLEDGEVIEW_BACKER_KEY?: string
  PLEDGEVIEW_KEY_PEPPER?: string
  PLEDGEVIEW_PLATFORM_CURRENCY?: string
}

/** A setting is not what the tables began with. */
export class IdentityDiffers extends Error {
  override name = 'IdentityDiffers'
}

interface Row {
  setting: string
  fingerprint: string
}

/** For a process that writes: holds what nobody has held yet, and throws `IdentityDiffers` where somebody held another. */
export async function holdTablesIdentity(
  tables: Pick<Tables, 'rows' | 'insert'>,
  databases: Databases,
  identity: Identity,
): Promise<void> {
  const held = new Set((await checkTablesIdentity(tables, databases, identity)).map(row => row.setting))
  const missing = rowsOf(identity).filter(({ setting }) => !held.has(setting))
  if (missing.length === 0) return
  await tables.insert({
    table: `${databases.model}.identity`,
    columns: ['setting', 'fingerprint'],
    format: 'JSONCompactEachRow',
    body: missing.map(({ setting, fingerprint }) => JSON.stringify([setting, fingerprint])).join('\n'),
  })
  await checkTablesIdentity(tables, databases, identity)
}

/** For a process that only reads. Throws `IdentityDiffers` where a setting is held that is another here. */
export async function checkTablesIdentity(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  identity: Identity,
): Promise<Row[]> {
  const held = await tables.rows<Row>({
    query: `SELECT DISTINCT setting, fingerprint FROM ${databases.model}.identity`,
  })
  const own = new Map(rowsOf(identity).map(({ setting, fingerprint }) => [setting, fingerprint]))
  for (const { setting, fingerprint } of held) {
    if (!own.has(setting) || own.get(setting) === fingerprint) continue
    throw new IdentityDiffers(
      `${setting} is not what the tables in ${databases.model} began with; set it as it was then, or use another database`,
    )
  }
  return held
}

function rowsOf({ PLEDGEVIEW_PLATFORM_CURRENCY: currency, ...secrets }: Identity): Row[] {
  return [
    ...(currency === undefined ? [] : [{ setting: 'PLEDGEVIEW_PLATFORM_CURRENCY', fingerprint: currency }]),
    ...Object.entries(secrets).map(([setting, secret]) => ({ setting, fingerprint: fingerprintOf(secret) })),
  ]
}
