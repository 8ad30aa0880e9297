/**
 * An announcement: a notice to each contact of active keys, which the portals send as they send any other (notice-sender.ts). Its id is
 * made of its name and the address. So an address that was noted before gets no second mail of this name, unless the first was given up.
 */
import { isUtf8 } from 'node:buffer'
import type { ApiVersion } from '../../../contracts/api/versions.ts'
import { readSql } from '../../tables/sql-text.ts'
import { accountIdOf, checkEmail } from '../account/email.ts'
import { type Place, readRows } from '../reading.ts'
import type { Notices } from './notices.ts'
import type { MailText } from './texts.ts'

export interface Announcement extends MailText {
  /** 1 to 64 letters, digits and hyphens. */
  name: string
  /** Only contacts of keys that called it. */
  version?: ApiVersion | undefined
  isDry: boolean
}

export interface AnnouncementReport {
  addresses: number
  /** Contacts that are no address. */
  invalid: number
  /** By this run; in a dry run: what would be. */
  noted: number
  /** What became of those that were noted before. */
  waiting: number
  sent: number
  given_up: number
  /** Sent or given up more than 30 days ago: only their number is known (notice-sender.ts). */
  settled_before: number
}

export const namePattern = /^[A-Za-z0-9-]{1,64}$/

const contactsSql = readSql('contacts', import.meta.url)
const contactsMax = 100_000
const readMsMax = 60_000
// A text has up to 32 KB.
const batchMax = 100

// The number of a try, from the second one on. No id of an account ends like this.
const suffix = /\.(\d+)$/

/** Notes a mail to each contact that has none of this name yet, or only some that were given up. */
export async function announce(
  { notices, portalKey, ...place }: Place & { notices: Pick<Notices, 'add'>; portalKey: string },
  { name, subject, text, version, isDry }: Announcement,
  now: number,
): Promise<AnnouncementReport> {
  const prefix = `announcement.${name}.`
  const { addresses, invalid } = await contactsOfKeys(place, version)
  const sql = `SELECT notice_id, status FROM ${place.databases.base}.notice_ledger FINAL WHERE startsWith(notice_id, {prefix:String})`
  const known = await readRows<{ notice_id: string; status: string }>(place, sql, { prefix }, readMsMax)
  const triesOf = Map.groupBy(known, ({ notice_id }) => notice_id.replace(suffix, ''))
  const wanted = addresses
    .flatMap(recipient => {
      const first = `${prefix}${accountIdOf(portalKey, recipient)}`
      const tries = triesOf.get(first) ?? []
      if (tries.some(({ status }) => status !== 'GIVEN_UP')) return []
      // A notice that is settled stays so. So each further try to reach an address has an id of its own.
      const last = Math.max(0, ...tries.map(({ notice_id }) => Number(suffix.exec(notice_id)?.[1] ?? 1)))
      return { recipient, notice_id: last === 0 ? first : `${first}.${last + 1}` }
    })
    .map(one => ({ ...one, subject, text, rule: 'ANNOUNCEMENT' as const, account_id: null }))
  for (let first = 0; first < wanted.length && !isDry; first += batchMax)
    await notices.add(wanted.slice(first, first + batchMax), now)
  const countOf = (status: string) => known.filter(one => one.status === status).length
  const before = {
    ...{ waiting: countOf('WAITING'), sent: countOf('SENT'), given_up: countOf('GIVEN_UP') },
    settled_before: countOf(''),
  }
  return { addresses: addresses.length, invalid, noted: wanted.length, ...before }
}

/**
 * The contacts of active keys. With a version: of those that called it in the last 90 days. Usage is counted for deprecated versions
 * together, so several deprecated versions have the same contacts.
 */
async function contactsOfKeys(place: Place, version: ApiVersion | undefined) {
  const query_params = {
    only_called: version !== undefined,
    only_deprecated: version !== undefined && version.deprecation !== null,
    rows_max: contactsMax + 1,
  }
  const rows = await readRows<{ contact_email: string }>(place, contactsSql, query_params, readMsMax)
  if (rows.length > contactsMax) throw new Error(`there are more than ${contactsMax} contacts`)
  const checked = rows.map(({ contact_email }) => checkEmail(contact_email))
  const addresses = new Set(checked.flatMap(one => ('email' in one ? [one.email] : [])))
  const invalid = checked.filter(one => 'reason' in one).length
  return { addresses: [...addresses].sort(), invalid }
}

/** The subject and the text of an announcement, as an operator typed them. Pure. */

const subjectLengthMax = 150
const textBytesMax = 32 * 1024

/** The subject, or why it cannot be sent, worded to follow the name of an option. */
export function checkSubject(typed: string): { subject: string } | { reason: string } {
  const subject = typed.trim()
  if (subject === '') return { reason: 'is missing' }
  return subject.length > subjectLengthMax
    ? { reason: `has more than ${subjectLengthMax} characters` }
    : { subject }
}

/** The text of a file, with line feeds only. */
export function checkText(bytes: Uint8Array): { text: string } | { reason: string } {
  if (bytes.length > textBytesMax) return { reason: `has more than ${textBytesMax} bytes` }
  if (!isUtf8(bytes)) return { reason: 'is not UTF-8' }
  const text = new TextDecoder().decode(bytes).replaceAll('\r\n', '\n')
  return text.trim() === '' ? { reason: 'is empty' } : { text }
}
