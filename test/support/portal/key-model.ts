/** A read model with a projector that runs, a journal, and any number of portals that issue keys into it. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { type KeyAdmin, keyDirectory } from '../../../services/api-keys/api-keys.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import { createPortalKeys } from '../../../services/portal/keys/portal-keys.ts'
import type { PortalKeys } from '../../../services/portal/ports.ts'
import { createProjectorService } from '../../../services/projector/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { hashBacker, openModelTables } from '../projector/model-tables.ts'

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
  const root = await mkdtemp(join(tmpdir(), 'pledgeview-portal-keys-'))
  closers.push(() => rm(root, { recursive: true, force: true }))
  const journal = join(root, 'journal.sqlite')
  const first = await openJournalWriter(journal)
  closers.push(() => first.close())
  const reader = await openJournalReader(journal, { consumer: 'projector' })
  closers.push(() => reader.close())
  const service = createProjectorService({
    reader,
    tables: model.tables,
    databases,
    config: readConfig({ PLEDGEVIEW_BATCH_MS_MAX: '10', PLEDGEVIEW_FOLD_MS_MAX: '30000' }),
    hashBacker,
    run: 'run',
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: () => 0,
  })
  const abort = new AbortController()
  const running = service.run(abort.signal)
  closers.push(() => {
    abort.abort()
    return running
  })

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
