/**
 * A sender of an announcement, in a process of its own. Tests kill it.
 *
 *     fork('test/support/portal/notify-child.ts', [JSON.stringify({ store, smtpUrl, announcement })])
 */
import { type Announcement, announce } from '../../../services/portal/notices/announcement.ts'
import { createSmtpMailer } from '../../../services/portal/notices/smtp-mailer.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { portalKey } from './app.ts'

export interface NotifyChildArguments {
  /** The path of the store. */
  store: string
  smtpUrl: string
  announcement: Announcement
}

const { store: path, smtpUrl, announcement } = JSON.parse(process.argv[2] ?? '') as NotifyChildArguments
const store = openSqliteStore({ path, now: Date.now })
const mailer = createSmtpMailer({ url: smtpUrl, from: 'Pledgeview <no-reply@portal.example>' })
const { signal } = new AbortController()
await announce({ store, mailer, portalKey, now: Date.now, signal }, announcement)
await mailer.close()
await store.close()
process.disconnect?.()
