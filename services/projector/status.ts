/** What `pledgeview status` and the ops port say of a projector and its tables. */
import type { PartitionLag } from '../shared/event-log/port.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
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
  fold: {
    /** ISO 8601; null before the first. */
    last_finished_at: string | null
    last_elapsed_ms: number
    pending_batches: number
  }
  tables: {
    public_campaigns: number
    known_campaigns: number
    known_pledges: number
    active_keys: number
  }
}

/** Asks projector and tables. */
export async function statusOf({
  projector,
  tables,
  databases,
}: {
  projector: ProjectorService
  tables: Tables
  databases: Databases
}): Promise<Status> {
  const { failure, records, rejects } = projector.health()
  return {
    projector: {
      state: failure === undefined ? 'running' : 'stopped',
      failure: failure ?? null,
      records,
      rejects,
      lag: await projector.lag(),
    },
    ...(await tablesStatus(tables, databases)),
  }
}

/** Counts of pledges are of ledger rows, superseded ones not yet merged included. */
export async function tablesStatus(tables: Tables, databases: Databases): Promise<TablesStatus> {
  const { model } = databases
  const [counts] = await tables.rows<TablesStatus['tables'] & TablesStatus['fold']>({
    query: `SELECT
        (SELECT count() FROM ${databases.views}.campaigns) AS public_campaigns,
        (SELECT count() FROM ${model}.campaign_ledger FINAL) AS known_campaigns,
        (SELECT count() FROM ${model}.pledge_ledger) AS known_pledges,
        (SELECT countIf(is_active) FROM ${model}.api_keys FINAL) AS active_keys,
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
  if (!counts) throw new Error('the tables gave no counts')
  return {
    fold: {
      last_finished_at: counts.last_finished_at,
      last_elapsed_ms: counts.last_elapsed_ms,
      pending_batches: counts.pending_batches,
    },
    tables: {
      public_campaigns: counts.public_campaigns,
      known_campaigns: counts.known_campaigns,
      known_pledges: counts.known_pledges,
      active_keys: counts.active_keys,
    },
  }
}
