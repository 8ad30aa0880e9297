/**
 * A sender of an announcement, in a process of its own. Tests kill it.
 *
 *     fork('test/support/portal/notify-child.ts', [JSON.stringify({ journal, smtpUrl, announcement })])
 */
import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { createSmtpMailer } from '../../../services/portal/mail/smtp-mailer.ts'
import { type Announcement, announce } from '../../../services/portal/notices/announcement.ts'
import { createClaims } from '../../../services/portal/notices/claims.ts'
import { openJournalStateTopic } from '../../../services/shared/event-log/journal/state-topic.ts'
import { sleep } from '../../../services/shared/sleep.ts'
import { portalKey } from './app.ts'

export interface NotifyChildArguments {
  journal: string
  smtpUrl: string
  announcement: Announcement
}

const { journal, smtpUrl, announcement } = JSON.parse(process.argv[2] ?? '') as NotifyChildArguments
const topic = await openJournalStateTopic(journal, 'notices', { logger: pino({ level: 'silent' }) })
const mailer = createSmtpMailer({ url: smtpUrl, from: 'Pledgeview <no-reply@portal.example>' })
const now = Date.now
const monotonicMs = () => performance.now()
const claim = createClaims({ topic, sender: randomUUID(), now, random: Math.random, sleep })
const { signal } = new AbortController()
const report = await announce(
  { topic, mailer, claim, portalKey, now, monotonicMs, sleep, signal },
  announcement,
)
process.send?.(report)
await mailer.close()
await topic.close()
process.disconnect?.()
