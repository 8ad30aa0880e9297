/** What `pledgeview status` and the ops port say of a projector and its tables. */
import type { PartitionLag } from '../shared/event-log/port.ts'
import type { Databases, Shard, Tables } from '../shared/tables/port.ts'
import type { ProjectorService } from './service.ts'

export interface Status extends TablesStatus {
  projector: {
    state: 'running' | 'stopped'
    failure: string | null
    /** Of this run. */
    records: number
    rejects: number
    lag: PartitionLag[]
  }
}

/** What the tables themselves tell. */
export interface TablesStatus {
  /** On a cluster, of the shard that is the furthest behind. */
  fold: FoldStatus
  tables: TableCounts
}

interface FoldStatus {
  /** ISO 8601; null before the first. */
  last_finished_at: string | null
  last_elapsed_ms: number
  pending_batches: number
}

interface TableCounts {
  public_campaigns: number
  known_campaigns: number
  /** Ledger rows, superseded ones that are not merged yet included. */
  known_pledges: number
  active_keys: number
}

/** Which tables are asked. `shards`: where the folders work, where that is not on the tables themselves. */
export interface StatusTables {
  tables: Tables
  databases: Databases
  shards?: readonly Shard[]
}

/** Asks projector and tables. */
export async function statusOf({
  projector,
  ...asked
}: StatusTables & { projector: ProjectorService }): Promise<Status> {
  const { failure, records, rejects } = projector.health()
  return {
    projector: {
      state: failure === undefined ? 'running' : 'stopped',
      failure: failure ?? null,
      records,
      rejects,
      lag: await projector.lag(),
    },
    ...(await tablesStatus(asked)),
  }
}

export async function tablesStatus({ tables, databases, shards }: StatusTables): Promise<TablesStatus> {
  // In the direction of the data, here and in who asks for the lag: what counts as done at one look is in the next.
  const folds = await Promise.all((shards ?? [{ tables, databases }]).map(readFold))
  const counts = await readCounts(tables, databases)
  const [furthestBehind] = folds.toSorted((a, b) => b.pending_batches - a.pending_batches)
  if (!furthestBehind) throw new Error('there is no shard')
  return { fold: furthestBehind, tables: counts }
}

async function readCounts(tables: Tables, { model, views }: Databases): Promise<TableCounts> {
  const [counts] = await tables.rows<TableCounts>({
    query: `SELECT
        (SELECT count() FROM ${views}.campaigns) AS public_campaigns,
        (SELECT count() FROM ${model}.campaign_ledger FINAL) AS known_campaigns,
        (SELECT count() FROM ${model}.pledge_ledger) AS known_pledges,
        (SELECT countIf(is_active) FROM ${model}.api_keys FINAL) AS active_keys`,
  })
  if (!counts) throw new Error('the tables gave no counts')
  return counts
}

async function readFold({ tables, databases: { model } }: Shard): Promise<FoldStatus> {
  const [fold] = await tables.rows<FoldStatus>({
    query: `SELECT
        (SELECT if(count() = 0, NULL, formatDateTime(max(finished_at), '%Y-%m-%dT%H:%i:%S.%fZ')) FROM ${model}.fold_log) AS last_finished_at,
        (SELECT argMax(elapsed_ms, fold_id) FROM ${model}.fold_log) AS last_elapsed_ms,
        (
            SELECT count() FROM ${model}.batch_log AS batch
            LEFT JOIN
            (
                SELECT tupleElement(done, 1) AS projector, max(tupleElement(done, 2)) AS sequence
                FROM ${model}.fold_log ARRAY JOIN folded AS done GROUP BY projector
            ) AS folded ON folded.projector = batch.projector
            WHERE batch.sequence > folded.sequence
        ) AS pending_batches`,
  })
  if (!fold) throw new Error('the fold log gave no answer')
  return fold
}
