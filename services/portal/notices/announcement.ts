/**
 * An announcement: one mail to each of many addresses, once, also if it is sent by several processes, or killed and run again.
 *
 * There is one notice for each address, by a keyed hash: no address is kept. A mail in doubt (claims.ts) is reported, and sent only
 * with `retriesDoubtful`. What another process is sending at this moment is left for the next run. A name stands for one subject and
 * text.
 */
import { createHash, createHmac } from 'node:crypto'
import { claimName } from './claims.ts'
import { blank, changeOf, type DeliverDependencies, deliver, type Sendable } from './deliver.ts'
import { isSettled, type NoticeParts } from './notices.ts'
import type { MailText } from './texts.ts'

export interface AnnouncementDependencies
  extends DeliverDependencies,
    Pick<NoticeParts, 'store' | 'portalKey'> {
  /** Ends it between two mails. */
  signal: AbortSignal
}

export interface Announcement extends MailText {
  /** 1 to 64 letters, digits and hyphens. */
  name: string
  addresses: readonly string[]
  isDry: boolean
  retriesDoubtful: boolean
}

export interface AnnouncementReport {
  sent: number
  /** Sent before this run, or by another process. */
  alreadySent: number
  /** The mail server takes no mail for them. Not tried again. */
  refused: number
  /** Not sent yet: the mail server failed, another process is at it, or the run was stopped. In a dry run: what would be sent. */
  left: number
  /** Why the last mail that failed was not sent. */
  lastFailure: string | undefined
  /** It is not known whether they have the mail. */
  doubtful: string[]
}

/** The name was used for another subject or text. */
export class OtherAnnouncement extends Error {
  override name = 'OtherAnnouncement'
}

export const namePattern = /^[A-Za-z0-9-]{1,64}$/

// The server is down: a person has to look.
const failuresMax = 5
const dryPart = 1_000
const textMs = 400 * 86_400_000

/** Sends to each address that does not have the mail yet. Run it again to go on. */
export async function announce(
  dependencies: AnnouncementDependencies,
  announcement: Announcement,
): Promise<AnnouncementReport> {
  const { portalKey, now, signal } = dependencies
  const { addresses, isDry, retriesDoubtful } = announcement
  await holdText(dependencies, announcement)
  if (isDry) return dryReport(dependencies, announcement)
  const report = emptyReport()
  let failures = 0
  for (const address of addresses) {
    if (signal.aborted || failures >= failuresMax) {
      report.left++
      continue
    }
    const notice = noticeOf(portalKey, announcement, address, now())
    const outcome = await deliver(dependencies, notice, { takesDoubtful: retriesDoubtful })
    if ('reason' in outcome) {
      failures++
      report.lastFailure = outcome.reason
    }
    if (outcome.kind === 'sent') {
      failures = 0
      report.sent++
    } else if (outcome.kind === 'doubtful') report.doubtful.push(address)
    else if (outcome.kind === 'failed' || outcome.kind === 'busy') report.left++
    else if (outcome.kind === 'refused' || outcome.status === 'GIVEN_UP') report.refused++
    else report.alreadySent++
  }
  return report
}

function emptyReport(): AnnouncementReport {
  return { sent: 0, alreadySent: 0, refused: 0, left: 0, lastFailure: undefined, doubtful: [] }
}

async function dryReport(
  { notices, store, portalKey, now }: AnnouncementDependencies,
  announcement: Announcement,
): Promise<AnnouncementReport> {
  const { addresses, retriesDoubtful } = announcement
  const report = emptyReport()
  for (let from = 0; from < addresses.length; from += dryPart) {
    const part = addresses.slice(from, from + dryPart).map(address => ({
      address,
      id: noticeOf(portalKey, announcement, address, now()).notice_id,
    }))
    const held = (await notices.ofIds(part.map(({ id }) => id))).filter(isSettled)
    const settled = new Map(held.map(({ notice_id, status }) => [notice_id, status]))
    for (const { address, id } of part) {
      const status = settled.get(id) ?? (await store.get(claimName(id)))
      if (status === 'GIVEN_UP') report.refused++
      else if (status === 'SENT') report.alreadySent++
      else if (status !== undefined && !retriesDoubtful) report.doubtful.push(address)
      else report.left++
    }
  }
  return report
}

/** Notes what the name stands for. Throws `OtherAnnouncement` if it stands for something else. */
async function holdText(
  { notices, store, now }: AnnouncementDependencies,
  { name, subject, text, isDry }: Announcement,
): Promise<void> {
  const id = `announcement.${name}`
  const digest = createHash('sha256')
    .update(JSON.stringify([subject, text]))
    .digest('hex')
  const present = (await notices.get(id))?.subject ?? (await store.get(id))
  // Of two that begin at once, one takes the name.
  const isTaken = present === undefined && !isDry && !(await store.claim(id, digest, textMs))
  const taken = isTaken ? await store.get(id) : present
  if (taken !== undefined && taken !== digest) {
    throw new OtherAnnouncement(
      `--id ${name} was used for another subject or text: take another id, or the same subject and text`,
    )
  }
  if (taken !== undefined || isDry) return
  const at = now()
  const head = { ...blank, notice_id: id, rule: 'ANNOUNCEMENT', account_id: null, subject: digest } as const
  await notices.append([changeOf({ ...head, attempts: 0, created_at: at }, { status: 'SENT', sent_at: at })])
}

function noticeOf(
  portalKey: string,
  { name, subject, text }: Announcement,
  address: string,
  at: number,
): Sendable {
  const hash = createHmac('sha256', portalKey).update(`announcement to ${address}`).digest('hex')
  return {
    notice_id: `announcement.${name}.${hash.slice(0, 32)}`,
    rule: 'ANNOUNCEMENT',
    account_id: null,
    ...{ recipient: address, subject, text },
    ...{ attempts: 0, created_at: at },
  }
}

/** The subject and the text of an announcement, as an operator typed them. Pure. */

const subjectLengthMax = 150
const textBytesMax = 32 * 1024

/** The subject, or why it cannot be sent, worded to follow the name of an option. */
export function checkSubject(typed: string): { subject: string } | { reason: string } {
  const subject = typed.trim()
  if (subject === '') return { reason: 'is missing' }
  if ([...subject].length > subjectLengthMax)
    return { reason: `has more than ${subjectLengthMax} characters` }
  return unprintable.test(subject) || !subject.isWellFormed()
    ? { reason: 'has line breaks or other control characters' }
    : { subject }
}

/** The text of a file, with line feeds only. */
export function checkText(bytes: Uint8Array): { text: string } | { reason: string } {
  if (bytes.length > textBytesMax) return { reason: `has more than ${textBytesMax} bytes` }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n')
  } catch {
    return { reason: 'is not UTF-8' }
  }
  if (text.trim() === '') return { reason: 'is empty' }
  const at = text.split('\n').findIndex(line => unprintable.test(line.replaceAll('\t', ' ')))
  return at < 0 ? { text } : { reason: `has a control character in line ${at + 1}` }
}

// Also marks that change the direction of the text. Joiners (U+200C, U+200D) are part of words and emoji.
const unprintable =
  /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u
