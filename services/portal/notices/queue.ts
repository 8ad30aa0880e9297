/**
 * Notes the mails of a rule for the sender (notice-sender.ts). A mail is kept with its address until it is sent or given up.
 */
import { createHmac } from 'node:crypto'
import type { NoticeRule } from '../../../contracts/events/portal-event.ts'
import { checkEmail } from '../account/email.ts'
import type { KeyNotices } from '../ports.ts'
import { changeOf } from './deliver.ts'
import type { Notice, NoticeParts } from './notices.ts'
import { keyCreatedText, keyRevokedText, type MailText } from './texts.ts'

type QueueParts = Pick<NoticeParts, 'notices' | 'store' | 'portalKey' | 'now' | 'logger'>

export interface NewNotice extends MailText {
  notice_id: string
  rule: NoticeRule
  account_id: string | null
  recipient: string
}

// A contact address is not verified, so nobody may fill a stranger's mailbox through us.
export const perAddressPerDayMax = 40

const dayMs = 86_400_000

/** Notes mails, unless a notice with the id was noted before. Resolves with the number of those that were noted. */
export async function queueNotices(dependencies: QueueParts, wanted: readonly NewNotice[]): Promise<number> {
  const noted: Notice[] = []
  for (const one of wanted) {
    const notice = await noteOf(dependencies, one)
    if (notice) noted.push(notice)
  }
  if (noted.length > 0) await dependencies.notices.write(noted)
  return noted.length
}

async function noteOf(
  { notices, store, portalKey, now, logger }: QueueParts,
  notice: NewNotice,
): Promise<Notice | undefined> {
  const { notice_id, rule } = notice
  if (await notices.get(notice_id)) return undefined
  const checked = checkEmail(notice.recipient)
  if ('reason' in checked) {
    logger.warn({ notice_id, rule }, 'a notice has no address that a mail could be sent to')
    return undefined
  }
  const address = createHmac('sha256', portalKey).update(`notices to ${checked.email}`).digest('hex')
  if ((await store.count(`notices:${address}`, dayMs)) > perAddressPerDayMax) {
    logger.warn({ notice_id, rule }, 'a notice was dropped: its address had its mails of the day')
    return undefined
  }
  return changeOf({ ...notice, recipient: checked.email, attempts: 0, created_at: now() }, {})
}

/** Mails about keys, to the account's address and to the contact of the key. One mail if both are the same. */
export function createKeyNotices(
  dependencies: QueueParts & { portalUrl: string; wake: () => void },
): KeyNotices {
  const { portalUrl, wake } = dependencies

  async function queue(
    rule: NoticeRule,
    { account_id, email }: { account_id: string; email: string },
    contact: string,
    keyPrefix: string,
    mail: MailText,
  ): Promise<void> {
    const notice = { ...mail, rule, account_id }
    const toAccount = { ...notice, notice_id: `${keyPrefix}.${rule}.account`, recipient: email }
    const toContact = { ...notice, notice_id: `${keyPrefix}.${rule}.contact`, recipient: contact }
    const isSame = contact.trim().toLowerCase() === email.toLowerCase()
    await queueNotices(dependencies, isSame ? [toAccount] : [toAccount, toContact])
    wake()
  }

  return {
    created: (account, { name, contact_email }, keyPrefix) =>
      queue('KEY_CREATED', account, contact_email, keyPrefix, keyCreatedText(name, keyPrefix, portalUrl)),
    revoked: (account, { name, contact_email }, keyPrefix) =>
      queue('KEY_REVOKED', account, contact_email, keyPrefix, keyRevokedText(name, keyPrefix, portalUrl)),
  }
}
