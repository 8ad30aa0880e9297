/**
 * Sends the mail of a notice, at most once: claim, send, mark as sent.
 *
 * How it fails: if the server refuses the mail, the claim is taken back, and the mail may be sent later. If it is not known whether the
 * server has it (it does not answer, or this process is killed), the claim stays, and the mail is in doubt.
 */
import { messageOf } from '../../runtime/message-of.ts'
import { retry } from '../../runtime/retry.ts'
import { MailError } from '../ports.ts'
import type { ClaimNotice, Settled } from './claims.ts'
import type { Notice, NoticeParts } from './notices.ts'

export interface DeliverDependencies extends Pick<NoticeParts, 'notices' | 'mailer' | 'now' | 'monotonicMs'> {
  claim: ClaimNotice
}

export type Delivery =
  | { kind: 'sent' }
  /** It was sent or given up before. */
  | { kind: 'settled'; status: Settled }
  /** Another process is sending it. */
  | { kind: 'busy' }
  /** It may have been sent before; with a reason: just now, but the server did not answer. */
  | { kind: 'doubtful'; reason?: string }
  /** The server takes no mail for this address. It is not tried again. */
  | { kind: 'refused' }
  /** It was not sent. It can be tried again. */
  | { kind: 'failed'; reason: string }

/** The mail to send. `recipient`, `subject` and `text` go to the mail server, and are not in the ledger afterwards. */
export type Sendable = Omit<Notice, 'status' | 'sent_at' | 'changed_at'>

// A claim is far from old when its mail begins, so no other process takes the mail for doubtful.
const startMsMax = 30_000
// The mail is sent: what is marked as sent is never in doubt.
const markPolicy = { attemptsMax: 4, pauseMsMin: 200, pauseMsMax: 2_000, isRetryable: () => true }

/**
 * `isKept`: the notice itself is in the ledger, so its failed attempts are counted there. `takesDoubtful`: send it although it may
 * have been sent before.
 */
export async function deliver(
  dependencies: DeliverDependencies,
  notice: Sendable,
  { isKept = false, takesDoubtful = false } = {},
): Promise<Delivery> {
  const { notices, claim, mailer, now, monotonicMs } = dependencies
  const startedAt = monotonicMs()
  const claimed = await claim(notice, { takesDoubtful })
  if (claimed.kind !== 'mine') return claimed
  const attempts = notice.attempts + 1
  // The ledger has it before the claim is released. Otherwise the next round would not know that it has to wait.
  const countAttempt = () => notices.write([changeOf(notice, { attempts, changed_at: now() })])
  const settle = async (status: Settled, change: Partial<Notice>) => {
    await notices.append([changeOf(notice, { ...blank, ...change, status, changed_at: now() })])
    await claimed.settle(status)
  }
  // Counted before it is sent, so that a process that is killed each time does not send it for ever.
  if (isKept && claimed.doubtful) await countAttempt()
  if (monotonicMs() - startedAt > startMsMax) {
    await claimed.release()
    return { kind: 'failed', reason: 'the event log took too long' }
  }
  try {
    await mailer.send({
      id: notice.notice_id,
      to: notice.recipient,
      subject: notice.subject,
      text: notice.text,
    })
  } catch (error) {
    if (error instanceof MailError && error.isInDoubt) return { kind: 'doubtful', reason: error.message }
    if (error instanceof MailError && error.isRefusedAddress) {
      await settle('GIVEN_UP', { attempts })
      return { kind: 'refused' }
    }
    if (isKept) await countAttempt()
    await claimed.release()
    return { kind: 'failed', reason: messageOf(error) }
  }
  await retry(() => settle('SENT', { sent_at: now() }), markPolicy)
  return { kind: 'sent' }
}

/** The notice with what has changed. */
export function changeOf(notice: Sendable, change: Partial<Notice>): Notice {
  const { notice_id, rule, account_id, recipient, subject, text, attempts, created_at } = notice
  return {
    ...{ notice_id, rule, account_id, recipient, subject, text, attempts, created_at },
    status: 'WAITING',
    sent_at: null,
    changed_at: created_at,
    ...change,
  }
}

/** What a notice keeps of its mail once it is done. */
export const blank = { recipient: '', subject: '', text: '' } as const
