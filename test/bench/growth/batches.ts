/** What a long batch log costs: the statements that read it, each on a log of so many rows. Part of the growth bench. */
import { readFileSync } from 'node:fs'
import type { FoldWorker } from '../../../services/projector/fold/fold-worker.ts'
import { tablesStatus } from '../../../services/projector/status.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { nameDatabases } from '../../../services/tables/schema/sql-files.ts'
import { secondsOf } from '../platform/fold.ts'

export interface GrowthBatches {
  /** A fold that finds no new batch. */
  lookMs: number
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
  const lookMs = await msOf(() => foldWorker.fold())
  const statusMs = await msOf(() => tablesStatus({ tables, databases }))
  const [disk] = await tables.rows<{ bytes: string }>({
    query: `SELECT toString(sum(bytes_on_disk)) AS bytes FROM system.parts
            WHERE active AND database = {model:String} AND table = 'batch_log'`,
    query_params: { model: ledger },
  })
  return { lookMs, statusMs, diskBytes: Number(disk?.bytes ?? 0) }
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  return 1000 * (await secondsOf(async () => void (await work())))
}
