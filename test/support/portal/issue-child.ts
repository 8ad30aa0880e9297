/**
 * A portal that dies between the click and the answer. Tests kill it.
 *
 *     fork('test/support/portal/issue-child.ts', [JSON.stringify({ journal, databases, settings, account, msAgo, replaces })])
 *
 * It issues a key, or replaces one within an hour, sends the new key, and then never answers: nobody sees the secret.
 */
import { randomBytes } from 'node:crypto'
import { createPortalKeys } from '../../../services/portal/keys/portal-keys.ts'
import { keyDirectory } from '../../../services/shared/api-keys/api-keys.ts'
import { openJournalWriter } from '../../../services/shared/event-log/journal/journal.ts'
import { openTables, type TablesSettings } from '../../../services/shared/tables/clickhouse.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { integrationOf, pepper } from './key-model.ts'

export interface IssueChildArguments {
  journal: string
  databases: Databases
  settings: TablesSettings
  account: string
  /** How much its clock is behind. */
  msAgo: number
  /** The key to replace. */
  replaces?: string
}

const { journal, databases, settings, account, msAgo, replaces } = JSON.parse(
  process.argv[2] ?? '',
) as IssueChildArguments
const keys = createPortalKeys({
  directory: keyDirectory(openTables(settings), databases),
  writer: await openJournalWriter(journal),
  pepper,
  now: () => Date.now() - msAgo,
  monotonicMs: () => performance.now(),
  randomBytes,
})
const integration = integrationOf(account)
const { key } = replaces
  ? await keys.replace(account, replaces, 'one-hour', integration)
  : await keys.issue(integration)
process.send?.(key)
// It waits to be killed, and does not outlive its parent.
process.on('disconnect', () => process.exit())
