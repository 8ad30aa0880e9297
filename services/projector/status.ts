/** What `pledgeview status` and the ops port report about a projector and its tables. */
import type { PartitionLag } from '../log/port.ts'
import { within } from '../runtime/async/sleep.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { iso } from '../tables/clickhouse/statements.ts'
import { type Databases, type Shard, type Tables, TablesError } from '../tables/port.ts'
import { type ProjectorStop, readProjection } from '../tables/projector-stops.ts'
import { rejectCounts } from '../tables/stored-rejects.ts'
import { readPending } from './fold/fold-progress.ts'
import {
  type OversoldTiers,
  readClaims,
  readSharedSlugs,
  type SharedSlugs,
  type UnknownCampaigns,
  unknownSince,
} from './producers/claims.ts'
import {
  type MisplacedStatus,
  readMisplaced,
  readVersionFaults,
  type VersionsStatus,
} from './projector-log.ts'
import type { ProjectorService } from './service.ts'

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
  | ({
      /** `answers`: false in an outage. Otherwise the tables are there, but cannot be read: a missing table, or a right. */
      clickhouse: { ok: false; answers: boolean; detail: string }
      stopped: ProjectorStop | null
    } & Record<Exclude<keyof TablesStatus, 'stopped'>, null>)

/** What the tables alone can report. */
export interface TablesStatus {
  /** On a cluster: of the shard that is furthest behind. */
  fold: FoldStatus
  tables: TableCounts
  /** In the last 30 days: records that are not in the partition of their key. */
  misplaced: MisplacedStatus
  /** What producers did wrong, and what only all events together show. */
  producers: ProducersStatus
  rejects: { total: number; open: number }
  /** Why the projectors stopped, if they did and none leads since. */
  stopped: ProjectorStop | null
  lag: TablesLag
}

/** How far the stages behind the log are behind. */
export interface TablesLag {
  /** The age of the oldest event that is in the ledger and not folded; 0 if there is none. */
  ledger_seconds: number
  /** The age of the watermark, and the watermark itself; null before the first fold. */
  fold_seconds: number | null
  as_of: string | null
}

export interface ProducersStatus {
  /** In the last 30 days, of the events that were compared. */
  versions: VersionsStatus[]
  /** `since`: when the first pledge of the examples, of the last 30 days, entered the log. */
  unknown_campaigns: UnknownCampaigns & { since: string | null }
  oversold_tiers: OversoldTiers
}

interface FoldStatus {
  /** ISO 8601; null before the first fold. */
  last_finished_at: string | null
  last_elapsed_ms: number
  pending_batches: number
  /** The campaigns that the common folds leave out; on a cluster, of all shards. */
  quarantine: QuarantineStatus[]
}

/** A public campaign that the common folds cannot fold within their bounds. It is tried alone. */
export interface QuarantineStatus {
  campaign_id: string
  /** ISO 8601. */
  since: string
  /** How many tries in a row have failed. 0: what is shown is what the last try found. */
  failures: number
  /** Why it last could not be folded. */
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
  /** The event log says that no projector runs. */
  noneLeads?: boolean
  /** Of a service on Kafka. */
  config?: Config
}

// While Kafka is away, the lag is asked for again and again.
const lagMsMax = 10_000

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
  let unread: string[] = []
  const lag = await within(lagMsMax, projector.lag()).catch((error): PartitionLag[] => {
    unread = [`the event log does not answer, so the lag is not known: ${messageOf(error)}`]
    return []
  })
  return {
    projector: {
      state: failure === undefined ? 'running' : 'stopped',
      failure: failure ?? null,
      records,
      rejects,
      lag,
      warnings: [...warnings, ...unread],
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
    const none = { fold: null, tables: null, misplaced: null, producers: null, rejects: null, lag: null }
    return { clickhouse, ...none, stopped: null }
  }
}

export async function tablesStatus({
  tables,
  databases,
  shards = [{ tables, databases }],
  noneLeads = false,
  config,
}: StatusTables): Promise<TablesStatus> {
  // Read in the direction of the data flow: the caller has read the lag first. So what counts as done in one reading is
  // already visible in the next.
  const folds = await Promise.all(shards.map(readFold))
  const counts = await readCounts(tables, databases)
  const misplaced = await readMisplaced(tables, databases)
  const producers = await readProducers({ tables, databases }, shards)
  const rejects = await rejectCounts({ tables, databases })
  const { stopped, ...projection } = await readProjection(tables, databases, { ...config, noneLeads })
  const [furthestBehind] = folds.toSorted((a, b) => b.fold.pending_batches - a.fold.pending_batches)
  if (!furthestBehind) throw new Error('there is no shard')
  const quarantine = folds.flatMap(({ fold }) => fold.quarantine)
  const fold = { ...furthestBehind.fold, quarantine }
  const lag = { ledger_seconds: Math.max(...folds.map(({ waitsSeconds }) => waitsSeconds)), ...projection }
  return { fold, tables: counts, misplaced, producers, rejects, stopped, lag }
}

async function readProducers(whole: Shard, shards: readonly Shard[]): Promise<ProducersStatus> {
  const { unknown, oversold } = await readClaims(shards)
  const [first] = shards
  // The batch log is whole in the ledger of each shard.
  const since = first ? await unknownSince(first, unknown.examples) : null
  return {
    versions: await readVersionFaults(whole.tables, whole.databases),
    unknown_campaigns: { ...unknown, since },
    oversold_tiers: oversold,
  }
}

async function readCounts(tables: Tables, databases: Databases): Promise<TableCounts> {
  const { base, ledger, views } = databases
  const [counts] = await tables.rows<Omit<TableCounts, 'shared_slugs'>>({
    query: `SELECT
        (SELECT count() FROM ${views}.campaigns) AS public_campaigns,
        (SELECT count() FROM ${ledger}.campaign_ledger FINAL) AS known_campaigns,
        (SELECT count() FROM ${ledger}.pledge_ledger FINAL) AS known_pledges,
        (SELECT countIf(is_active) FROM ${base}.api_keys FINAL) - (SELECT count() FROM ${base}.revoked_keys) AS active_keys`,
  })
  if (!counts) throw new Error('the tables returned no counts')
  return { ...counts, shared_slugs: await readSharedSlugs(tables, databases) }
}

async function readFold({ tables, databases }: Shard): Promise<{ fold: FoldStatus; waitsSeconds: number }> {
  const { ledger } = databases
  const pending = await readPending(tables, databases)
  const [fold] = await tables.rows<Omit<FoldStatus, 'quarantine' | 'pending_batches'>>({
    query: `SELECT
        if(count() = 0, NULL, ${iso('max(written_at)')}) AS last_finished_at,
        argMax(elapsed_ms, fold_id) AS last_elapsed_ms
      FROM ${ledger}.fold_progress`,
  })
  if (!fold) throw new Error('the progress of the fold returned no row')
  const quarantine = await readQuarantine({ tables, databases })
  const waitsSeconds = pending ? Math.max(0, Date.now() - pending.oldestAt) / 1000 : 0
  return { fold: { ...fold, pending_batches: pending?.batches ?? 0, quarantine }, waitsSeconds }
}

/** The public campaigns in quarantine, by id. */
export function readQuarantine({ tables, databases: { ledger } }: Shard): Promise<QuarantineStatus[]> {
  return tables.rows({
    query: `SELECT campaign_id, ${iso('since')} AS since, failures, reason
            FROM ${ledger}.quarantine FINAL WHERE is_quarantined
              AND campaign_id IN (SELECT campaign_id FROM ${ledger}.campaign_ledger FINAL WHERE is_public)
            ORDER BY campaign_id`,
  })
}
