/** Notes mails for the sender (notice-sender.ts). A mail is kept with its address until it is sent or given up. */
import type { NoticeRule } from '../../../contracts/events/portal-event.ts'
import { keyPrefix, keyPrefixLength } from '../../api-keys/credentials.ts'
import { dayMs, type Runtime } from '../../runtime/runtime.ts'
import { readSql } from '../../tables/sql-text.ts'
import { checkEmail } from '../account/email.ts'
import { sealOf } from '../http/cookies.ts'
import type { KeyFields } from '../keys/key-fields.ts'
import type { Account } from '../ports.ts'
import { type Place, readRows } from '../reading.ts'
import type { PortalStore } from '../store/port.ts'
import type { NewNotice, Notices } from './notices.ts'
import { keyCreatedText, keyRevokedText, runawayText } from './texts.ts'

export interface NoteParts extends Pick<Runtime, 'now' | 'logger'> {
  notices: Notices
  store: PortalStore
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
  /** The public address of the portal. */
  portalUrl: string
}

// A contact address is not verified, so nobody may fill a stranger's mailbox through us.
export const perAddressPerDayMax = 40

/** `isToOwner`: the recipient is the account's own address, which is verified. */
type Wanted = NewNotice & { isToOwner?: boolean }

async function noteMails(parts: NoteParts, wanted: readonly Wanted[]): Promise<void> {
  const noted: NewNotice[] = []
  for (const { isToOwner = false, ...one } of wanted) {
    const recipient = await recipientOf(parts, one, isToOwner)
    if (recipient !== undefined) noted.push({ ...one, recipient })
  }
  if (noted.length > 0) await parts.notices.add(noted, parts.now())
}

/** The address in its normal form, if it is one, and if it may get another mail today. */
async function recipientOf(
  { store, portalKey, logger }: NoteParts,
  { notice_id, rule, recipient }: NewNotice,
  isToOwner: boolean,
): Promise<string | undefined> {
  const checked = checkEmail(recipient)
  if ('reason' in checked) {
    logger.warn({ notice_id, rule }, 'a notice has no address that a mail could be sent to')
    return undefined
  }
  // Counted apart: otherwise a stranger who names this address as a contact could keep its owner's mails from coming, and those about
  // the traffic of its own keys.
  const ofRule = rule === 'RUNAWAY_TRAFFIC' ? 'notices of traffic to' : 'notices to'
  const address = sealOf(portalKey, isToOwner ? 'notices to the owner' : ofRule, checked.email)
  if ((await store.count(`notices:${address}`, dayMs)) <= perAddressPerDayMax) return checked.email
  logger.warn({ notice_id, rule }, 'a notice was dropped: its address had its mails of the day')
  return undefined
}

export type KeyNotices = ReturnType<typeof createKeyNotices>

/**
 * Mails about a key that was created or revoked, to the account's address and to the contact of the key. One mail if both are the
 * same. Resolves when they are noted; they are sent elsewhere, and retried.
 */
export function createKeyNotices(parts: NoteParts) {
  const note = (rule: NoticeRule, textOf: typeof keyCreatedText) =>
    async function noteKey(
      { account_id, email }: Account,
      { name, contact_email }: Pick<KeyFields, 'name' | 'contact_email'>,
      keyPrefix: string,
    ): Promise<void> {
      const notice = { ...textOf(name, keyPrefix, parts.portalUrl), rule, account_id }
      const notice_id = `${keyPrefix}.${rule}`
      const toAccount = { ...notice, notice_id: `${notice_id}.account`, recipient: email, isToOwner: true }
      const toContact = { ...notice, notice_id: `${notice_id}.contact`, recipient: contact_email }
      const isSame = contact_email.trim().toLowerCase() === email.toLowerCase()
      await noteMails(parts, isSame ? [toAccount] : [toAccount, toContact])
    }

  return { created: note('KEY_CREATED', keyCreatedText), revoked: note('KEY_REVOKED', keyRevokedText) }
}

/* Finds keys whose program runs away, and notes a mail to the contact of each, at most one a day. */

const runawaySql = readSql('runaway', import.meta.url)
const minuteMs = 60_000
// A count is in the table some seconds after its minute.
const settledMs = minuteMs
const refusedMinutesMin = 8
const rowsMax = 100

interface RunawayRow {
  key: string
  name: string
  contact_email: string
  requests: number
  refused: number
}

/** Notes the mails of one look at the table. */
export async function checkRunaways(parts: NoteParts & Place): Promise<void> {
  const { portalUrl, now } = parts
  const at = now()
  const day = new Date(at).toISOString().slice(0, 10)
  const rows = await findRunaways(parts, at)
  await noteMails(
    parts,
    rows.map(row => ({
      ...runawayText(row, keyPrefix(row.key), portalUrl),
      notice_id: `${keyPrefix(row.key)}.RUNAWAY_TRAFFIC.${day}`,
      rule: 'RUNAWAY_TRAFFIC',
      account_id: null,
      recipient: row.contact_email,
    })),
  )
}

/** The keys whose programs run away now (Unix ms), without those that have a notice of the last 24 hours. */
export function findRunaways(place: Place, now: number): Promise<RunawayRow[]> {
  const until = Math.floor((now - settledMs) / minuteMs) * minuteMs
  const bounds = { minutes_min: refusedMinutesMin, prefix_length: keyPrefixLength, rows_max: rowsMax }
  return readRows(place, runawaySql, { until, since: now - dayMs, ...bounds })
}
