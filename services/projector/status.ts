/** What `pledgeview status` and the ops port report about a projector and its tables. */
import type { PartitionLag } from '../shared/event-log/port.ts'
import { messageOf } from '../shared/message-of.ts'
import { type Databases, type Shard, type Tables, TablesError } from '../shared/tables/port.ts'
import { type MisplacedStatus, readMisplaced } from './projector-log.ts'
import type { ProjectorService } from './service.ts'
import { readSharedSlugs, type SharedSlugs } from './shared-slugs.ts'

export type Status = ReachedTables & {
  projector: {
    state: 'running' | 'stopped'
    failure: string | null
    /** Of this run. */
    records: number
    rejects: number
    lag: PartitionLag[]
    /** What an operator should change. */
    warnings: string[]
  }
}

/**
 * What the tables report, or why they do not answer. The lag is read from the event log, so it is known either way, and
 * an operator needs it most while ClickHouse is away.
 */
export type ReachedTables =
  | (TablesStatus & { clickhouse: { ok: true; detail: string } })
  | {
      /** `answers`: false in an outage. Otherwise the tables are there, but cannot be read: a missing table, or a right. */
      clickhouse: { ok: false; answers: boolean; detail: string }
      fold: null
      tables: null
      misplaced: null
    }

/** What the tables alone can report. */
export interface TablesStatus {
  /** On a cluster: of the shard that is furthest behind. */
  fold: FoldStatus
  tables: TableCounts
  /** In the last 30 days: records that are not in the partition of their key. */
  misplaced: MisplacedStatus
}

interface FoldStatus {
  /** ISO 8601; null before the first fold. */
  last_finished_at: string | null
  last_elapsed_ms: number
  pending_batches: number
  /** The campaigns that the common folds leave out; on a cluster, of all shards. */
  set_aside: SetAsideStatus[]
}

/** A campaign that the common folds cannot fold within their bounds. It is folded alone. */
export interface SetAsideStatus {
  campaign_id: string
  /** ISO 8601. */
  since: string
  /** Whether changes may be missing from the read table. */
  is_behind: boolean
  /** How often it could not be folded alone, since it last could. */
  failures: number
  /** Why its last fold failed. */
  reason: string
}

interface TableCounts {
  public_campaigns: number
  known_campaigns: number
  /** Including deleted ones. */
  known_pledges: number
  active_keys: number
  shared_slugs: SharedSlugs
}

/** The tables to read. `shards`: the fold workers' shards, if these are not the tables themselves. */
export interface StatusTables {
  tables: Tables
  databases: Databases
  shards?: readonly Shard[]
}

/** Reads the status of the projector and of its tables. */
export async function statusOf({
  projector,
  warnings = [],
  ...asked
}: StatusTables & {
  projector: Pick<ProjectorService, 'health' | 'lag'>
  warnings?: readonly string[]
}): Promise<Status> {
  const { failure, records, rejects } = projector.health()
  return {
    projector: {
      state: failure === undefined ? 'running' : 'stopped',
      failure: failure ?? null,
      records,
      rejects,
      lag: await projector.lag(),
      warnings: [...warnings],
    },
    ...(await reachedTables(() => tablesStatus(asked))),
  }
}

/** Reads the status of the tables. If they cannot be read, it resolves with the reason. */
export async function reachedTables(read: () => Promise<TablesStatus>): Promise<ReachedTables> {
  try {
    return { clickhouse: { ok: true, detail: 'answers' }, ...(await read()) }
  } catch (error) {
    const answers = !(error instanceof TablesError && error.retryable)
    const clickhouse = { ok: false, answers, detail: messageOf(error) } as const
    return { clickhouse, fold: null, tables: null, misplaced: null }
  }
}

export async function tablesStatus({ tables, databases, shards }: StatusTables): Promise<TablesStatus> {
  // Read in the direction of the data flow: the caller has read the lag first. So what counts as done in one reading is
  // already visible in the next.
  const folds = await Promise.all((shards ?? [{ tables, databases }]).map(readFold))
  const counts = await readCounts(tables, databases)
  const misplaced = await readMisplaced(tables, databases)
  const [furthestBehind] = folds.toSorted((a, b) => b.pending_batches - a.pending_batches)
  if (!furthestBehind) throw new Error('there is no shard')
  const set_aside = folds.flatMap(fold => fold.set_aside)
  return { fold: { ...furthestBehind, set_aside }, tables: counts, misplaced }
}

async function readCounts(tables: Tables, databases: Databases): Promise<TableCounts> {
  const { model, views } = databases
  const [counts] = await tables.rows<Omit<TableCounts, 'shared_slugs'>>({
    query: `SELECT
        (SELECT count() FROM ${views}.campaigns) AS public_campaigns,
        (SELECT count() FROM ${model}.campaign_ledger FINAL) AS known_campaigns,
        (SELECT count() FROM ${model}.pledge_ledger FINAL) AS known_pledges,
        (SELECT countIf(is_active) FROM ${model}.api_keys FINAL) AS active_keys`,
  })
  if (!counts) throw new Error('the tables returned no counts')
  return { ...counts, shared_slugs: await readSharedSlugs(tables, databases) }
}

async function readFold({ tables, databases: { model } }: Shard): Promise<FoldStatus> {
  // On a cluster the batch log is that of all shards. Without the subquery, each shard would join its rows with its own fold log.
  const [fold] = await tables.rows<Omit<FoldStatus, 'set_aside'>>({
    query: `SELECT
        (SELECT if(count() = 0, NULL, formatDateTime(max(finished_at), '%Y-%m-%dT%H:%i:%S.%fZ')) FROM ${model}.fold_log) AS last_finished_at,
        (SELECT argMax(elapsed_ms, fold_id) FROM ${model}.fold_log) AS last_elapsed_ms,
        (
            SELECT count() FROM (SELECT projector, sequence FROM ${model}.batch_log) AS batch
            LEFT JOIN
            (
                SELECT tupleElement(done, 1) AS projector, max(tupleElement(done, 2)) AS sequence
                FROM ${model}.fold_log ARRAY JOIN folded AS done GROUP BY projector
            ) AS folded ON folded.projector = batch.projector
            WHERE batch.sequence > folded.sequence
        ) AS pending_batches`,
  })
  if (!fold) throw new Error('the fold log returned no row')
  const set_aside = await tables.rows<SetAsideStatus>({
    query: `SELECT campaign_id, formatDateTime(since, '%Y-%m-%dT%H:%i:%S.%fZ') AS since, is_behind, failures, reason
            FROM ${model}.set_aside FINAL WHERE is_set_aside ORDER BY campaign_id`,
  })
  return { ...fold, set_aside }
}
