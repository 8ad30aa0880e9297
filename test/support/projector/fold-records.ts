/** Faults in what the private tables record of batches and folds. Each list is empty if everything is right. */
import type { FoldStep } from '../../../services/projector/fold/fold-statements.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'

export const noFoldFaults = { foreignFolds: [], epochs: [], gaps: [] }

export async function foldFaults(tables: Tables, { ledger }: Databases) {
  /** Folds that were recorded under an epoch that no process took. */
  const foreignFolds = await column(
    tables,
    `SELECT fold_id AS value FROM ${ledger}.fold_progress
     WHERE bitShiftRight(fold_id, 32) NOT IN (SELECT epoch FROM ${ledger}.fold_epochs)`,
  )
  // Epochs that are not the next after the one before. Two processes that take an epoch at the same time get the same number. Then
  // both take another.
  const epochs = await column(
    tables,
    `SELECT epoch AS value FROM (SELECT DISTINCT epoch FROM ${ledger}.fold_epochs ORDER BY epoch)
     WHERE epoch != rowNumberInAllBlocks() + 1`,
  )
  /** Runs of a projector whose batches have gaps in their numbers. */
  const gaps = await column(
    tables,
    `SELECT projector AS value FROM ${ledger}.batch_log GROUP BY projector
     HAVING uniqExact(sequence) != max(sequence) OR min(sequence) != 1`,
  )
  return { foreignFolds, epochs, gaps }
}

/** How many runs of a projector have written a batch. */
export async function livesWithBatches(tables: Tables, { ledger }: Databases): Promise<number> {
  const [lives] = await column(tables, `SELECT uniqExact(projector) AS value FROM ${ledger}.batch_log`)
  return Number(lives)
}

/** The keys that are active in the read table, sorted. */
export async function activeKeys(tables: Tables, { base }: Databases): Promise<unknown[]> {
  return column(tables, `SELECT api_key AS value FROM ${base}.api_keys FINAL WHERE is_active ORDER BY value`)
}

/** When each public campaign last changed, Unix ms by its id. */
export async function stampsById({ tables, databases: { views } }: Shard): Promise<Record<string, number>> {
  const rows = await tables.rows<{ id: string; at: number }>({
    query: `SELECT campaign_id AS id, toUnixTimestamp64Milli(updated_at) AS at FROM ${views}.campaigns`,
  })
  return Object.fromEntries(rows.map(({ id, at }) => [id, at]))
}

/** The highest watermark that was written, Unix ms; 0 before the first. */
export async function highestWatermark({ tables, databases: { read } }: Shard): Promise<number> {
  const query = `SELECT toUnixTimestamp64Milli(max(reached)) AS value FROM ${read}.watermarks`
  return Number((await column(tables, query))[0])
}

/** As if the tables had rested for 40 days: nothing was folded since, and all batches have expired. */
export async function restTables({ tables, databases: { ledger, read } }: Shard): Promise<void> {
  for (const query of [
    `ALTER TABLE ${ledger}.batch_log DELETE WHERE 1 SETTINGS mutations_sync = 2`,
    `ALTER TABLE ${read}.watermarks DELETE WHERE 1 SETTINGS mutations_sync = 2`,
    `INSERT INTO ${read}.watermarks (shard, reached) SELECT '', now64(3, 'UTC') - INTERVAL 40 DAY SETTINGS async_insert = 0`,
  ])
    await tables.run({ query })
}

/** ClickHouse's clock, Unix ms. */
export async function clockOf(tables: Tables): Promise<number> {
  return Number((await column(tables, "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS value"))[0])
}

/** The values of a query's column `value`. */
export async function column(tables: Tables, query: string): Promise<unknown[]> {
  const rows = await tables.rows<{ value: unknown }>({ query })
  return rows.map(({ value }) => value)
}

/** Makes a leader without a fold worker: its statements have the steps of `stepOf`. */
export async function lead(tables: Tables, { ledger }: Databases): Promise<void> {
  await tables.run({ query: `INSERT INTO ${ledger}.fold_epochs (epoch, holder) SELECT 1, 'leader'` })
}

/** The n-th step of a leader, with room for everything. */
export function stepOf(n: number, term = { epoch: 1n, holder: 'leader' }): FoldStep {
  const bounds = { msMax: 60_000, memoryBytesMax: 2 ** 31, platformDigits: 2 }
  return { term, foldId: (term.epoch << 32n) + BigInt(n), pieces: 1, piece: 0, ...bounds }
}
