/** A journal with a projector that runs: what is appended is in the ledgers a moment later. It has only the projector's loop, without a fold. */
import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { portalKeyOf, portalTopics } from '../../../contracts/events/portal-event.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import type { LogRecord } from '../../../services/log/port.ts'
import { recordOf } from '../../../services/portal/own-events.ts'
import { addDelivery, emptyBatch, ledgerInserts } from '../../../services/projector/ingest/batch.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { noticeEvent } from '../events/accounts.ts'
import { startIngest } from '../projector/ingest-loop.ts'
import { hashBacker, type ModelTables } from '../projector/model-tables.ts'
import { openTestJournal } from '../projector/running-projector.ts'

export type ProjectedLog = Awaited<ReturnType<typeof projectedJournal>>

export async function projectedJournal(model: ModelTables) {
  const { tables } = model
  const databases = await model.freshDatabases()
  const closing = new AsyncDisposableStack()
  closing.defer(() => model.giveBack(databases))
  const { path, reader, writer } = closing.adopt(await openTestJournal(), ({ close }) => close())
  const settings = { batchMsMax: 5, idleMsMax: 50 }
  closing.adopt(startIngest({ reader, tables, databases, now: Date.now, settings }), ({ stop }) => stop())
  return {
    ...{ tables, databases },
    /** A writer of one more process. */
    openWriter: async () => closing.adopt(await openJournalWriter(path), one => one.close()),
    /** Everything that is in the portal's topics, without the code under test. The records of a key are in their order. */
    async records(): Promise<LogRecord[]> {
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
    /** Empties the ledgers, once everything in the log is in them. */
    async clear() {
      const marker = noticeEvent(`marker-${randomUUID()}`)
      await writer.append([recordOf(marker)])
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
    close: () => closing.disposeAsync(),
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
