/**
 * Sends the mails that wait, looks for runaway traffic, and tidies the notices. Every portal runs one.
 *
 * - A mail is sent by one portal: see claims.ts. If the server refuses it, it is tried again after a pause that doubles, `attemptsMax`
 *   times.
 * - A mail about a key that is in doubt is sent again, with the same Message-ID: a person should not miss it. Every other mail
 *   in doubt is not.
 * - The looks at the tables are made by one portal at a time, the one that takes the turn in the store.
 * A round does at most `mailsMax` mails.
 */
import { backoffMs } from '../../runtime/retry.ts'
import { createClaims } from './claims.ts'
import { blank, changeOf, deliver } from './deliver.ts'
import type { Notice, NoticeParts } from './notices.ts'
import { checkRunaways } from './runaway.ts'

export type NoticeSender = ReturnType<typeof createNoticeSender>

const lookMs = 300_000
const mailsMax = 50
const waitingMax = 5_000
const attemptsMax = 8
const doubtfulAttemptsMax = 2
const pauses = { pauseMsMin: 60_000, pauseMsMax: 3_600_000 }

export function createNoticeSender(parts: NoticeParts) {
  const { notices, store, now, logger } = parts
  const claim = createClaims(parts)

  async function send(notice: Notice): Promise<boolean> {
    const { notice_id, rule, attempts } = notice
    const isAboutKey = rule === 'KEY_CREATED' || rule === 'KEY_REVOKED'
    const takesDoubtful = isAboutKey && attempts < doubtfulAttemptsMax
    const outcome =
      attempts >= attemptsMax
        ? { kind: 'given up' as const }
        : await deliver({ ...parts, claim }, notice, { isKept: true, takesDoubtful })
    if (outcome.kind === 'given up' || outcome.kind === 'doubtful') {
      logger.warn({ notice_id, rule, attempts }, `a notice is ${outcome.kind}`)
    }
    // In doubt and not sent again, or tried often enough. Its address must not stay.
    if (outcome.kind === 'given up' || (outcome.kind === 'doubtful' && !takesDoubtful)) {
      await notices.append([changeOf(notice, { ...blank, status: 'GIVEN_UP', changed_at: now() })])
    }
    if (outcome.kind === 'failed') {
      logger.warn({ notice_id, rule, reason: outcome.reason }, 'a notice could not be sent')
    }
    return outcome.kind === 'sent'
  }

  /** Sends what is due. Resolves with the number of mails that were sent. */
  async function sendDue(stop?: AbortSignal): Promise<number> {
    const waiting = await notices.waiting(now() - waitMsMax, waitingMax)
    const due = waiting.filter(notice => isDue(notice, now()))
    let sent = 0
    for (const notice of due.slice(0, mailsMax)) {
      if (stop?.aborted) break
      if (await send(notice)) sent++
    }
    return sent
  }

  /** Looks for runaway traffic and tidies, if it is this portal's turn. */
  async function look(): Promise<void> {
    const turn = Math.floor(now() / lookMs)
    if (!(await store.claim(`notices-turn:${turn}`, '', 2 * lookMs))) return
    await tidyNotices(parts)
    await checkRunaways(parts)
  }

  return { sendDue, look }
}

function isDue({ attempts, changed_at }: Notice, now: number): boolean {
  return attempts === 0 || now >= changed_at + backoffMs(attempts, pauses)
}

/**
 * Keeps the notices few, and free of addresses that are not needed.
 *
 * - A mail that waited for a day is given up, and so is one of an account that was deleted.
 * - A settled notice is removed after its time.
 */

const dayMs = 86_400_000
/** A mail that waits for longer is not sent. */
const waitMsMax = dayMs
const changesMax = 5_000
const settledMsMax = 30 * dayMs
// An announcement may be resumed for long. The other ids do not come back.
const announcedMsMax = 400 * dayMs

/** At most `changesMax` changes; resolves with their number. */
async function tidyNotices({ notices, now }: NoticeParts): Promise<number> {
  const at = now()
  const since = {
    waits_since: at - waitMsMax,
    settled_since: at - settledMsMax,
    announced_since: at - announcedMsMax,
  }
  const untidy = await notices.untidy(since, changesMax)
  const over = untidy.filter(({ work }) => work === 'over')
  const gone = untidy.filter(({ work }) => work === 'gone')
  await notices.remove(over.map(({ notice_id }) => notice_id))
  await notices.append(
    gone.map(notice => changeOf({ ...notice, ...blank }, { status: 'GIVEN_UP', changed_at: at })),
  )
  return untidy.length
}
