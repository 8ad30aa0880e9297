/**
 * An announcement: one mail to each of many addresses, once, also if it is sent by several processes, or killed and run again.
 *
 * The store says of each address, by a keyed hash, what became of its mail. It is claimed before the mail is sent, and the claim stays. So after
 * a kill it shows that the mail may have been sent: it is in doubt. A mail in doubt is reported, and sent only with
 * `retriesDoubtful`. What another process is sending at this moment is left for the next run. A name stands for one subject and text.
 */
import { createHash, createHmac } from 'node:crypto'
import { messageOf } from '../../runtime/message-of.ts'
import { MailError, type Mailer } from '../ports.ts'
import type { PortalStore } from '../store/port.ts'
import type { MailText } from './texts.ts'

export interface AnnouncementDependencies {
  store: Pick<PortalStore, 'claim' | 'get' | 'put' | 'remove'>
  mailer: Pick<Mailer, 'send'>
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
  now: () => number
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

/** A claim that is older is in doubt: no process sends a mail for so long (smtp-mailer.ts). */
export const doubtfulMs = 120_000

// The server is down: a person has to look.
const failuresMax = 5
// As long as it may be resumed.
const keptMs = 400 * 86_400_000

/** Sends to each address that does not have the mail yet. Run it again to go on. */
export async function announce(
  dependencies: AnnouncementDependencies,
  announcement: Announcement,
): Promise<AnnouncementReport> {
  await holdText(dependencies, announcement)
  const report: AnnouncementReport = {
    ...{ sent: 0, alreadySent: 0, refused: 0, left: 0, lastFailure: undefined, doubtful: [] },
  }
  let failures = 0
  for (const address of announcement.addresses) {
    const isStopped = dependencies.signal.aborted || failures >= failuresMax
    const outcome = isStopped ? 'left' : await outcomeOf(dependencies, announcement, address, failed)
    if (outcome === 'sent') failures = 0
    if (outcome === 'doubtful') report.doubtful.push(address)
    else report[outcome]++
  }
  return report

  function failed(reason: string): void {
    failures++
    report.lastFailure = reason
  }
}

type Outcome = 'sent' | 'alreadySent' | 'refused' | 'left' | 'doubtful'

async function outcomeOf(
  { store, mailer, portalKey, now }: AnnouncementDependencies,
  { name, subject, text, isDry, retriesDoubtful }: Announcement,
  address: string,
  onFailure: (reason: string) => void,
): Promise<Outcome> {
  const hash = createHmac('sha256', portalKey).update(`announcement to ${address}`).digest('hex')
  const id = `announcement.${name}.${hash.slice(0, 32)}`
  const claim = `notice:${id}`
  let doubt: string | undefined
  if (isDry || !(await store.claim(claim, String(now()), keptMs))) {
    doubt = await store.get(claim)
    if (doubt === 'SENT') return 'alreadySent'
    if (doubt === 'GIVEN_UP') return 'refused'
    if (isDry) return doubt === undefined || retriesDoubtful ? 'left' : 'doubtful'
    // Another process is sending it, or has released it at this moment.
    if (doubt === undefined || now() - Number(doubt) <= doubtfulMs) return 'left'
    if (!retriesDoubtful) return 'doubtful'
    // Of several processes that find the same old claim, one takes it.
    if (!(await store.claim(`${claim}:${doubt}`, '', keptMs))) return 'left'
    await store.put(claim, String(now()), keptMs)
  }
  try {
    await mailer.send({ id, to: address, subject, text })
  } catch (error) {
    if (error instanceof MailError && error.isRefusedAddress) {
      await store.put(claim, 'GIVEN_UP', keptMs)
      return 'refused'
    }
    onFailure(messageOf(error))
    if (error instanceof MailError && error.isInDoubt) return 'doubtful'
    if (doubt === undefined) await store.remove(claim)
    else {
      await store.put(claim, doubt, keptMs)
      await store.remove(`${claim}:${doubt}`)
    }
    return 'left'
  }
  await store.put(claim, 'SENT', keptMs)
  return 'sent'
}

/** Notes what the name stands for. Throws `OtherAnnouncement` if it stands for something else. */
async function holdText(
  { store }: AnnouncementDependencies,
  { name, subject, text, isDry }: Announcement,
): Promise<void> {
  const id = `announcement.${name}`
  const digest = createHash('sha256')
    .update(JSON.stringify([subject, text]))
    .digest('hex')
  // Of two that begin at once, one takes the name.
  if (!isDry && (await store.claim(id, digest, keptMs))) return
  const taken = await store.get(id)
  if (taken === undefined || taken === digest) return
  throw new OtherAnnouncement(
    `--id ${name} was used for another subject or text: take another id, or the same subject and text`,
  )
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
