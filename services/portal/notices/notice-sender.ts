/**
 * Sends the mails that wait, looks for runaway traffic, and tidies the notices. Every portal runs one.
 *
 * - A mail is sent by the portal that claims it in the store. The claim ends after two minutes: if its portal was killed, another
 *   one sends the mail, maybe a second time, with the same Message-ID. Once the mail is settled, the claim stays, and says how. So a
 *   ledger that is late leads to no second mail.
 * - If the server does not take a mail, it is tried again for a day, after a pause that doubles, up to an hour.
 * - The looks at the tables are made by one portal at a time, the one that takes the turn in the store.
 * A round tries at most `mailsMax` mails, so a server that takes none delays nothing else for long.
 */

import { backoffMs } from '../../runtime/async/retry.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { dayMs } from '../../runtime/runtime.ts'
import { MailError, type Mailer } from '../ports.ts'
import type { Place } from '../reading.ts'
import { checkRunaways, type NoteParts } from './key-notices.ts'
import type { WaitingNotice } from './notices.ts'

export interface NoticeParts extends NoteParts, Place {
  /** Without one, nothing is sent, and what waits for too long is still given up. */
  mailer: Pick<Mailer, 'send'> | undefined
}

const lookMs = 300_000
const mailsMax = 50
// More than a server that takes none sees in `waitMsMax`. It ends a mail that kills each portal that sends it.
const triesMax = 30
const pauses = { pauseMsMin: 60_000, pauseMsMax: 3_600_000 }
// No mail takes so long (smtp-mailer.ts).
const sendingMs = 120_000
/** A mail that waits for longer is not sent. */
const waitMsMax = dayMs
// Until the ledger says so itself.
const settledMs = 7 * dayMs
const keptMs = 30 * dayMs

const claimOf = ({ notice_id }: WaitingNotice) => `notice:${notice_id}`

export function createNoticeSender(parts: NoticeParts) {
  const { notices, store, mailer, now, logger } = parts

  /** Resolves with whether the mail was sent; `undefined` if it is not this portal's, or not yet due again. */
  async function send(notice: WaitingNotice, mailer: Pick<Mailer, 'send'>): Promise<boolean | undefined> {
    const { notice_id, rule } = notice
    const claim = claimOf(notice)
    if (!(await store.claim(claim, '', sendingMs))) return undefined
    const mail = await notices.mailOf(notice)
    if (mail === undefined) return undefined
    const settle = async (status: 'SENT' | 'GIVEN_UP') => {
      await store.put(claim, status, settledMs)
      await notices.settle(notice, status, now())
      return status === 'SENT'
    }
    // Counted before it is sent.
    const tries = await store.count(`notice-tries:${notice_id}`, 2 * waitMsMax)
    if (tries > triesMax) {
      logger.warn({ notice_id, rule }, 'a notice is given up')
      return settle('GIVEN_UP')
    }
    try {
      await mailer.send({ id: notice_id, to: mail.recipient, subject: mail.subject, text: mail.text })
    } catch (error) {
      logger.warn({ notice_id, rule, reason: messageOf(error) }, 'a notice could not be sent')
      if (error instanceof MailError && error.isRefusedAddress) return settle('GIVEN_UP')
      await store.put(claim, '', backoffMs(tries, pauses))
      return false
    }
    return settle('SENT')
  }

  /** Sends what waits. Resolves with the number of mails that were sent. */
  async function sendDue(stop?: AbortSignal): Promise<number> {
    if (!mailer) return 0
    const waiting = await notices.waiting(now() - waitMsMax)
    let [tried, sent] = [0, 0]
    for (const notice of waiting.filter(({ is_over }) => !is_over)) {
      if (stop?.aborted || tried >= mailsMax) break
      const isSent = await send(notice, mailer)
      if (isSent !== undefined) tried++
      if (isSent) sent++
    }
    return sent
  }

  /** Looks for runaway traffic, and removes what nobody needs, if it is this portal's turn. */
  async function look(stop?: AbortSignal): Promise<void> {
    const turn = Math.floor(now() / lookMs)
    if (!(await store.claim(`notices-turn:${turn}`, '', 2 * lookMs))) return
    const waiting = await notices.waiting(now() - waitMsMax)
    // Their addresses must not stay. One that was sent may wait, too, if the log did not take that.
    for (const notice of waiting.filter(({ is_over }) => is_over)) {
      if (stop?.aborted) return
      const isSent = (await store.get(claimOf(notice))) === 'SENT'
      await notices.settle(notice, isSent ? 'SENT' : 'GIVEN_UP', now())
    }
    await notices.removeSettled(now() - keptMs)
    if (mailer) await checkRunaways(parts)
  }

  return { sendDue, look }
}
