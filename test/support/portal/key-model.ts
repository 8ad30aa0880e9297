/** A read model with a projector that runs, a journal, and any number of portals that issue keys into it. */
import { randomBytes } from 'node:crypto'
import { type KeyAdmin, keyDirectory } from '../../../services/api-keys/api-keys.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { createPortalKeys, type PortalKeys } from '../../../services/portal/keys/portal-keys.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { openModelTables } from '../projector/model-tables.ts'
import { openTestJournal, startProjector } from '../projector/running-projector.ts'

export const pepper = 'pepper'.repeat(8)

export interface KeyPortal {
  admin: KeyAdmin
  keys: PortalKeys
}

export interface KeyModel {
  tables: Tables
  databases: Databases
  clickHouse: ClickHouse
  journal: string
  /** A portal with its own writer. */
  openPortal(): Promise<KeyPortal>
  close(): Promise<void>
}

export async function openKeyModel(): Promise<KeyModel> {
  const closers: (() => unknown)[] = []
  const model = await openModelTables()
  closers.push(() => model.dispose())
  const databases = await model.freshDatabases()
  const log = await openTestJournal()
  closers.push(() => log.close())
  const journal = log.path
  const projector = startProjector({
    ...{ reader: log.reader, tables: model.tables, databases },
    settings: { PLEDGEVIEW_BATCH_MS_MAX: '10' },
  })
  closers.push(() => projector.stop())

  return {
    tables: model.tables,
    databases,
    clickHouse: model.clickHouse,
    journal,
    async openPortal() {
      const writer = await openJournalWriter(journal)
      closers.push(() => writer.close())
      const admin: KeyAdmin = {
        directory: keyDirectory(model.tables, databases),
        writer,
        pepper,
        now: Date.now,
        monotonicMs: () => performance.now(),
        randomBytes,
      }
      return { admin, keys: createPortalKeys(admin) }
    },
    async close() {
      for (const closer of closers.splice(0).reverse()) await closer()
    },
  }
}
