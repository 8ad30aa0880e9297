/** What a long batch log costs: the statements that read it, each on a log of so many rows. Part of the growth bench. */
import { readFileSync } from 'node:fs'
import type { FoldWorker } from '../../../services/projector/fold/fold-worker.ts'
import { tablesStatus } from '../../../services/projector/status.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { nameDatabases } from '../../../services/tables/sql-text.ts'
import { secondsOf } from '../platform/fold.ts'

export interface GrowthBatches {
  statusMs: number
  /** Of the log, in ClickHouse. */
  diskBytes: number
}

/** Replaces the batch log by one of this many rows, folds it, and measures. */
export async function measureBatches(
  { tables, databases, foldWorker }: { tables: Tables; databases: Databases; foldWorker: FoldWorker },
  batches: number,
): Promise<GrowthBatches> {
  const { ledger } = databases
  await tables.run({
    query: `ALTER TABLE ${ledger}.batch_log DELETE WHERE startsWith(projector, 'month-') SETTINGS mutations_sync = 1`,
  })
  const sql = readFileSync(new URL('batches.sql', import.meta.url), 'utf8')
  await tables.run({ query: nameDatabases(sql, databases), query_params: { batches } })
  await foldWorker.fold()
  const statusMs = 1000 * (await secondsOf(() => tablesStatus({ tables, databases })))
  return { statusMs, diskBytes: await bytesOnDisk(tables, databases, 'batch_log') }
}

/** Of a table of the ledger, in ClickHouse. */
export async function bytesOnDisk(tables: Tables, { ledger }: Databases, table: string): Promise<number> {
  const [row] = await tables.rows<{ bytes: string }>({
    query: `SELECT toString(sum(bytes_on_disk)) AS bytes FROM system.parts
            WHERE active AND database = {ledger:String} AND table = {table:String}`,
    query_params: { ledger, table },
  })
  return Number(row?.bytes ?? 0)
}
