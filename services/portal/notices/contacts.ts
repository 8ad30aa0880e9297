/** To whom an announcement goes: the contacts of active keys, or those of a file. */
import { type ApiVersion, versions } from '../../../contracts/api/versions.ts'
import { readSql } from '../../tables/read-sql.ts'
import { checkEmail } from '../account/email.ts'
import { type Place, readRows } from '../reading.ts'

export interface Contacts {
  /** In their normal form, each once. */
  addresses: string[]
  /** How many entries are no address that a mail could be sent to. */
  invalid: number
}

const contactsSql = readSql('contacts', import.meta.url)
export const contactsMax = 100_000
const readMsMax = 65_000

/** The version of the API with that name. */
export function versionOf(name: string): ApiVersion | undefined {
  return versions.find(version => version.name === name)
}

/**
 * The contacts of active keys. With a version: of those that called it in the last 90 days. Usage is counted for deprecated versions
 * together, so several deprecated versions have the same contacts.
 */
export async function contactsOfKeys(place: Place, version?: ApiVersion): Promise<Contacts> {
  const rows = await readRows<{ contact_email: string }>(place, contactsSql, readMsMax, {
    only_called: version !== undefined,
    only_deprecated: version !== undefined && version.deprecation !== null,
    rows_max: contactsMax + 1,
  })
  requireBounded(rows.length)
  return contactsOf(rows.map(({ contact_email }) => contact_email))
}

/** The contacts of a file: an address a line, empty lines and lines that begin with `#` left out. Throws for any other line. */
export function contactsOfFile(text: string, path: string): Contacts {
  const lines = text.split(/\r?\n/).map(line => line.trim())
  for (const [index, line] of lines.entries()) {
    if (line === '' || line.startsWith('#')) continue
    const checked = checkEmail(line)
    if ('reason' in checked) throw new Error(`${path}, line ${index + 1}: the address ${checked.reason}`)
  }
  const addresses = lines.filter(line => line !== '' && !line.startsWith('#'))
  requireBounded(addresses.length)
  return contactsOf(addresses)
}

function contactsOf(entries: readonly string[]): Contacts {
  const addresses = new Set<string>()
  let invalid = 0
  for (const entry of entries) {
    const checked = checkEmail(entry)
    if ('email' in checked) addresses.add(checked.email)
    else invalid++
  }
  return { addresses: [...addresses].sort(), invalid }
}

function requireBounded(count: number): void {
  if (count > contactsMax) {
    throw new Error(`there are more than ${contactsMax} contacts: split them with --contacts FILE`)
  }
}
