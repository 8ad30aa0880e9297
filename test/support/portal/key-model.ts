/** A read model with a projector that runs, a journal, and any number of portals that issue keys into it. */
import { randomBytes } from 'node:crypto'
import { type KeyAdmin, keyDirectory } from '../../../services/api-keys/api-keys.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { createPortalKeys } from '../../../services/portal/keys/portal-keys.ts'
import { openModelTables } from '../projector/model-tables.ts'
import { openTestJournal, startProjector } from '../projector/running-projector.ts'

export const pepper = 'pepper'.repeat(8)

export type KeyModel = Awaited<ReturnType<typeof openKeyModel>>
export type KeyPortal = Awaited<ReturnType<KeyModel['openPortal']>>

export async function openKeyModel() {
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
    /** A portal with its own writer. */
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
