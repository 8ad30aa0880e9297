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
  const closing = new AsyncDisposableStack()
  const model = closing.adopt(await openModelTables(), ({ dispose }) => dispose())
  const { tables } = model
  const databases = await model.freshDatabases()
  const { path: journal, reader } = closing.adopt(await openTestJournal(), ({ close }) => close())
  const settings = { PLEDGEVIEW_BATCH_MS_MAX: '10' }
  closing.adopt(startProjector({ reader, tables, databases, settings }), ({ stop }) => stop())

  return {
    ...{ tables, databases, journal },
    /** A portal with its own writer. */
    async openPortal() {
      const admin: KeyAdmin = {
        directory: keyDirectory(tables, databases),
        writer: closing.adopt(await openJournalWriter(journal), writer => writer.close()),
        pepper,
        now: Date.now,
        monotonicMs: () => performance.now(),
        randomBytes,
      }
      return { admin, keys: createPortalKeys(admin) }
    },
    close: () => closing.disposeAsync(),
  }
}
