/** A journal with a projector that runs: what is appended is in the ledgers a moment later. It has only the projector's loop, without a fold. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { portalKeyOf, portalTopics } from '../../../contracts/events/portal-event.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventWriter, LogRecord } from '../../../services/log/port.ts'
import { recordOf } from '../../../services/portal/own-events.ts'
import { addDelivery, emptyBatch, ledgerInserts } from '../../../services/projector/ingest/batch.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { noticeEvent } from '../events/accounts.ts'
import { fromStart } from '../events/starts.ts'
import { startIngest } from '../projector/ingest-loop.ts'
import { hashBacker, type ModelTables } from '../projector/model-tables.ts'

export interface ProjectedLog {
  tables: Tables
  databases: Databases
  /** A writer of one more process. */
  openWriter(): Promise<EventWriter>
  /** Everything that is in the portal's topics, without the code under test. The records of a key are in their order. */
  records(): Promise<LogRecord[]>
  /** Empties the ledgers, once everything in the log is in them. */
  clear(): Promise<void>
  close(): Promise<void>
}

export async function projectedJournal(model: ModelTables): Promise<ProjectedLog> {
  const { tables } = model
  const directory = mkdtempSync(join(tmpdir(), 'projected-'))
  const path = join(directory, 'journal.sqlite')
  const databases = await model.freshDatabases()
  const closers: (() => unknown)[] = [
    () => rmSync(directory, { recursive: true }),
    () => model.giveBack(databases),
  ]
  const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart, lookMs: 2 })
  closers.push(() => reader.close())
  const ingest = startIngest({
    ...{ reader, tables, databases, now: Date.now },
    circuitBreaker: {
      PLEDGEVIEW_REJECT_SHARE_MAX: 0,
      PLEDGEVIEW_REJECT_WINDOW_RECORDS: 100,
      PLEDGEVIEW_REJECTS_MIN: 1,
    },
    settings: { batchMsMax: 5, idleMsMax: 50, retryMsMax: 10_000 },
  })
  closers.push(() => ingest.stop())
  return {
    tables,
    databases,
    async openWriter() {
      const writer = await openJournalWriter(path)
      closers.push(() => writer.close())
      return writer
    },
    async records() {
      const db = new DatabaseSync(path, { readOnly: true })
      const records = portalTopics.flatMap(topic =>
        db
          .prepare(`SELECT offset, appended_at, key, value FROM state_${topic} ORDER BY offset`)
          .all()
          .map(({ offset, appended_at, key, value }) => {
            const place = { topic, partition: 0, offset: Number(offset), appendedAt: Number(appended_at) }
            return { ...place, key: key as Uint8Array, value: value as Uint8Array | null }
          }),
      )
      db.close()
      return records
    },
    async clear() {
      const marker = noticeEvent(`marker-${randomUUID()}`)
      const writer = await openJournalWriter(path)
      await writer.append([recordOf(marker)])
      await writer.close()
      const { base: database } = databases
      const id = { id: portalKeyOf(marker) }
      const found = () =>
        tables.rows({
          query: `SELECT 1 FROM ${database}.notice_ledger WHERE notice_id = {id:String}`,
          query_params: id,
        })
      while ((await found()).length === 0) await sleep(5)
      for (const table of ['notice_ledger', 'account_ledger', 'api_key_ledger', 'api_keys', 'api_key_usage'])
        await tables.run({ query: `TRUNCATE TABLE ${database}.${table}` })
    },
    async close() {
      for (const closer of closers.splice(0).reverse()) await closer()
    },
  }
}

/** What a compacted topic keeps of the records: of each key, the one that was appended last. */
export function compacted(records: readonly LogRecord[]): LogRecord[] {
  const last = new Map(records.map(record => [`${record.topic}/${Buffer.from(record.key ?? [])}`, record]))
  return [...last.values()]
}

/** Writes the records into the ledgers of these databases, as a projector of new tables does. */
export async function replay(
  tables: Tables,
  databases: Databases,
  records: readonly LogRecord[],
): Promise<void> {
  const batch = emptyBatch('replay', hashBacker)
  addDelivery(batch, { assignment: 'replay', positions: [], records: [...records] }, createDecoder())
  for (const insert of ledgerInserts(batch, databases)) await tables.insert(insert)
}
