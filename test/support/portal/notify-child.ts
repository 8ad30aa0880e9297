/**
 * A sender of an announcement, in a process of its own. Tests kill it.
 *
 *     fork('test/support/portal/notify-child.ts', [JSON.stringify({ journal, store, databases, settings, smtpUrl, announcement })])
 */

import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { type Announcement, announce } from '../../../services/portal/notices/announcement.ts'
import { createClaims } from '../../../services/portal/notices/claims.ts'
import { openNotices } from '../../../services/portal/notices/notices.ts'
import { createSmtpMailer } from '../../../services/portal/notices/smtp-mailer.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { sleep } from '../../../services/runtime/sleep.ts'
import { openTables, type TablesSettings } from '../../../services/tables/clickhouse.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { portalKey } from './app.ts'

export interface NotifyChildArguments {
  journal: string
  /** The path of the store. */
  store: string
  databases: Databases
  settings: TablesSettings
  smtpUrl: string
  announcement: Announcement
}

const { databases, settings, smtpUrl, announcement, ...paths } = JSON.parse(
  process.argv[2] ?? '',
) as NotifyChildArguments
const time = { now: Date.now, monotonicMs: () => performance.now(), sleep }
const writer = await openJournalWriter(paths.journal)
const tables = openTables(settings)
const store = openSqliteStore({ path: paths.store, now: Date.now })
const notices = openNotices({ writer, tables, databases, ...time })
const mailer = createSmtpMailer({ url: smtpUrl, from: 'Pledgeview <no-reply@portal.example>' })
const claim = createClaims({ store, notices, now: Date.now })
const { signal } = new AbortController()
const report = await announce({ notices, store, mailer, claim, portalKey, ...time, signal }, announcement)
process.send?.(report)
await mailer.close()
await store.close()
await tables.close()
await writer.close()
process.disconnect?.()
