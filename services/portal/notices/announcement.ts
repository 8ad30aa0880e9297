/**
 * An announcement: one mail to each of many addresses, once, also if it is sent by several processes, or killed and run again.
 *
 * There is one notice for each address, by a keyed hash: no address is kept. A mail in doubt (claims.ts) is reported, and sent only
 * with `retriesDoubtful`. A name stands for one subject and text.
 */
import { createHash, createHmac } from 'node:crypto'
import type { Sleep } from '../../runtime/sleep.ts'
import type { PortalStore } from '../store/port.ts'
import { claimName, doubtfulMs } from './claims.ts'
import {
  blank,
  changeOf,
  type DeliverDependencies,
  type Delivery,
  deliver,
  type Sendable,
} from './deliver.ts'
import { isSettled, type Notices } from './notices.ts'
import type { MailText } from './texts.ts'

export interface AnnouncementDependencies extends DeliverDependencies {
  notices: Pick<Notices, 'append' | 'write' | 'get' | 'ofIds'>
  store: Pick<PortalStore, 'claim' | 'get'>
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
  sleep: Sleep
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
  /** Not sent yet: the mail server failed, or the run was stopped. In a dry run: what would be sent. */
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
const busyPauseMs = 1_000
const dryPart = 1_000
const textMs = 400 * 86_400_000

/** Sends to each address that does not have the mail yet. Run it again to go on. */
export async function announce(
  dependencies: AnnouncementDependencies,
  announcement: Announcement,
): Promise<AnnouncementReport> {
  const { now, monotonicMs, sleep, signal } = dependencies
  const { isDry, retriesDoubtful } = announcement
  await holdText(dependencies, announcement)
  const report = { sent: 0, alreadySent: 0, refused: 0, left: 0, lastFailure: undefined, doubtful: [] }
  if (isDry) return dryReport(dependencies, announcement, report)

  const counted: AnnouncementReport = report
  const deadline = monotonicMs() + doubtfulMs
  let pending = [...announcement.addresses]
  let failures = 0
  // What another process is sending is looked at again, until it is sent or in doubt.
  while (pending.length > 0) {
    const busy: string[] = []
    for (const [index, address] of pending.entries()) {
      if (signal.aborted || failures >= failuresMax) {
        counted.left += pending.length - index
        break
      }
      const notice = noticeOf(dependencies.portalKey, announcement, address, now())
      const outcome = await deliver(dependencies, notice, { takesDoubtful: retriesDoubtful })
      if ('reason' in outcome) failures++
      if (outcome.kind === 'sent') failures = 0
      if (outcome.kind === 'busy') busy.push(address)
      else add(counted, outcome, address)
    }
    const isOver = monotonicMs() > deadline || signal.aborted || failures >= failuresMax
    if (isOver) counted.doubtful.push(...busy)
    pending = isOver ? [] : busy
    if (pending.length > 0) await sleep(busyPauseMs, signal)
  }
  return counted
}

function add(
  report: AnnouncementReport,
  outcome: Exclude<Delivery, { kind: 'busy' }>,
  address: string,
): void {
  switch (outcome.kind) {
    case 'sent':
      report.sent++
      return
    case 'settled':
      if (outcome.status === 'GIVEN_UP') report.refused++
      else report.alreadySent++
      return
    case 'refused':
      report.refused++
      return
    case 'doubtful':
      report.doubtful.push(address)
      report.lastFailure = outcome.reason ?? report.lastFailure
      return
    case 'failed':
      report.left++
      report.lastFailure = outcome.reason
      return
    default:
      outcome satisfies never
  }
}

async function dryReport(
  { notices, store, portalKey, now }: AnnouncementDependencies,
  announcement: Announcement,
  report: AnnouncementReport,
): Promise<AnnouncementReport> {
  const { addresses, retriesDoubtful } = announcement
  for (let from = 0; from < addresses.length; from += dryPart) {
    const part = addresses.slice(from, from + dryPart)
    const ids = part.map(address => noticeOf(portalKey, announcement, address, now()).notice_id)
    const settled = new Map(
      (await notices.ofIds(ids)).filter(isSettled).map(one => [one.notice_id, one.status]),
    )
    for (const [index, address] of part.entries()) {
      const id = ids[index] ?? ''
      const held = settled.get(id) ?? (await store.get(claimName(id)))
      if (held === 'SENT' || held === 'GIVEN_UP') add(report, { kind: 'settled', status: held }, address)
      else if (held !== undefined && !retriesDoubtful) report.doubtful.push(address)
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
  const head: Sendable = {
    ...{ notice_id: id, rule: 'ANNOUNCEMENT', account_id: null, attempts: 0, created_at: at },
    ...{ ...blank, subject: digest },
  }
  await notices.append([changeOf(head, { status: 'SENT', sent_at: at })])
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

export const subjectLengthMax = 150
export const textBytesMax = 32 * 1024

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
