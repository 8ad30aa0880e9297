/** Builds the statements of the fold as values. Their text is in `sql/`. This module fills in names and parameters. */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import { contentColumns, copiedColumns } from '../../../contracts/tables/campaign-columns.ts'
import type { Config } from '../../runtime/config.ts'
import type { Databases, Statement } from '../../tables/port.ts'
import { fillIn, nameDatabases, readSql } from '../../tables/sql-text.ts'
import type { Term } from './fold-epochs.ts'
import { type LongRun, ofRuns, type PendingRun } from './fold-progress.ts'

/** One fold statement: its share of the campaigns, its term, its limits of time and memory, and what is the same for all of a fold worker. */
export interface FoldStep {
  term: Term
  foldId: bigint
  /** Share number `piece` of `pieces` equal ranges: of the touched ids in order, or of the ids' hashes. */
  pieces: number
  piece: number
  msMax: number
  memoryBytesMax: number
  /** Digits of the platform's currency. */
  platformDigits: number
  /** The database of another generation's read tables: a row takes its stamp from there if its content is the same. */
  stampsFrom?: string | undefined
  /** If ClickHouse's clock has reached this time (Unix ms), a statement that stamps fails. */
  latest?: number | undefined
  /** The same, because the history has to copy rows of the day that ends then (days.ts). */
  dayEndsAt?: number | undefined
}

const texts = {
  'fold-campaigns': readSql('fold-campaigns', import.meta.url),
  'fold-keys': readSql('fold-keys', import.meta.url),
  withdraw: readSql('withdraw', import.meta.url),
  'record-quarantine': readSql('record-quarantine', import.meta.url),
  'note-days': readSql('note-days', import.meta.url),
  'follow-days': readSql('follow-days', import.meta.url),
  'derive-days': readSql('derive-days', import.meta.url),
}

/** The statement of a file in `sql/`. `parameters`: those that not every statement of a fold worker has. */
export function fileStatement(
  file: keyof typeof texts,
  databases: Databases,
  step: FoldStep,
  parameters: Statement['query_params'] = {},
): Statement {
  return {
    query: fill(texts[file], databases, step),
    query_params: { ...stepParameters(step), ...parameters },
  }
}

/**
 * The campaigns of the pending batches of these runs, without those that were in quarantine before the fold, which began with the number
 * `foldId`; or a single campaign; or all that the ledger knows. `isAgain`: some of the batches were read again after a restore
 * (restore.ts).
 */
export type Touched =
  | {
      foldId: bigint
      runs: readonly PendingRun[]
      longRuns: readonly LongRun[]
      hasQuarantine: boolean
      isAgain: boolean
    }
  | { campaign: string }
  | 'all'

export function foldCampaignsStatement(databases: Databases, step: FoldStep, touched: Touched): Statement {
  const { stampsFrom } = step
  const piece = pieceOf(databases, touched)
  const batches = batchesOf(touched)
  return {
    query: fill(texts['fold-campaigns'], databases, step, {
      touched: piece.query,
      ...(batches !== undefined && restamped(databases, batches)),
      ...(stampsFrom !== undefined && {
        kept_stamp: 'live.stands AND live.content_hash = new_hash, live.updated_at,',
        kept: `LEFT JOIN
(
    SELECT campaign_id, content_hash, updated_at, true AS stands FROM ${stampsFrom}.campaigns FINAL
    WHERE campaign_id IN (SELECT arrayJoin(touched))
) AS live ON live.campaign_id = fresh.campaign_id`,
      }),
    }),
    query_params: { ...stepParameters(step), ...piece.query_params },
  }
}

/** Campaigns that were read again after a restore get a new stamp, or a mark, whatever the tables have of them: once. */
function restamped({ ledger }: Databases, condition: string): Record<'again' | 'is_again', string> {
  return {
    is_again: 'again.before > standing.updated_at',
    again: `LEFT JOIN
(
    SELECT arrayJoin(campaign_ids) AS campaign_id, max(restamp_before) AS before FROM ${ledger}.batch_log AS batch
    PREWHERE restamp_before > 0 WHERE ${condition} GROUP BY campaign_id
) AS again ON again.campaign_id = fresh.campaign_id`,
  }
}

/** Which batches of a fold, or about a campaign, may have been read again; `undefined`: none. */
function batchesOf(touched: Touched): string | undefined {
  if (touched === 'all') return undefined
  if ('campaign' in touched) return 'has(campaign_ids, {campaign:String})'
  return touched.isAgain ? ofRuns(touched.longRuns, touched.runs).condition : undefined
}

/** The query of the touched campaigns, in any order. */
export function touchedCampaigns({ ledger }: Databases, touched: Touched): Statement {
  if (touched === 'all') return { query: `SELECT DISTINCT campaign_id FROM ${ledger}.campaign_ledger` }
  if ('campaign' in touched)
    return { query: 'SELECT {campaign:String} AS campaign_id', query_params: { campaign: touched.campaign } }
  const { condition, parameters } = ofRuns(touched.longRuns, touched.runs)
  const all = `SELECT DISTINCT arrayJoin(campaign_ids) AS campaign_id FROM ${ledger}.batch_log AS batch
        WHERE ${condition}`
  // What a piece of this fold puts into quarantine stays in the ids, so that the ranges of the other pieces stay the same.
  const query = touched.hasQuarantine
    ? `SELECT campaign_id FROM (${all}) WHERE campaign_id NOT IN
          (SELECT campaign_id FROM ${ledger}.quarantine FINAL WHERE is_quarantined AND fold_id < {began:UInt64})`
    : all
  return { query, query_params: { ...parameters, began: touched.foldId.toString() } }
}

/** The query of one row with the ids of a piece, in order: one of equal ranges of the touched ids. */
function pieceOf(databases: Databases, touched: Touched): Statement {
  const all = touchedCampaigns(databases, touched)
  const query = `
        SELECT arraySlice(arraySort(groupArray(campaign_id)) AS ids, intDiv(length(ids) * {piece:UInt32}, {pieces:UInt32}) + 1 AS first,
            intDiv(length(ids) * ({piece:UInt32} + 1), {pieces:UInt32}) + 1 - first)
        FROM (${all.query})
    `
  return { ...all, query }
}

/** Which campaigns a piece has: one row {campaigns, first, isPublic}, their number, the first of them, and whether that one is public in the ledger. */
export function pieceCampaignsStatement(
  databases: Databases,
  { pieces, piece }: { pieces: number; piece: number },
  touched: Touched,
): Statement {
  const { query, query_params } = pieceOf(databases, touched)
  return {
    query: `WITH (${query}) AS touched
            SELECT length(touched) AS campaigns, touched[1] AS first, toBool((
              SELECT count() FROM ${databases.ledger}.campaign_ledger FINAL
              WHERE is_public AND campaign_id IN (SELECT touched[1])
            )) AS isPublic`,
    query_params: { pieces, piece, ...query_params },
  }
}

/**
 * Runs before a fold of what is read again after a restore. Nobody can tell whether readers had seen what left while the tables were
 * away. So the removals are complete only from here on (contracts/tables/generation/0004-removals.sql). The stamp is above the watermark,
 * because a mirror that has the watermark has to look for itself, too.
 */
export function noteGapStatement(databases: Databases, step: FoldStep): Statement {
  return {
    query: `INSERT INTO ${databases.read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
            SELECT '', toFixedString('', 16), ${stampOf(databases)} + toIntervalMillisecond(1), {fold_id:UInt64}, 1
            WHERE ${fenceOf(databases, step)} AND ${clockFence(databases, step)} ${bounds(step)}`,
    query_params: stepParameters(step),
  }
}

export function stepParameters({ term, foldId, pieces, piece, platformDigits }: FoldStep) {
  const { holder } = term
  return { holder, fold_id: foldId.toString(), pieces, piece, platform_digits: platformDigits }
}

/** The stamp of what a statement changes: ClickHouse's clock, but never below the watermark (watermark.ts). */
export function stampOf({ read }: Databases): string {
  return `greatest(now64(3, 'UTC'), (SELECT max(reached) FROM ${read}.watermarks))`
}

/**
 * A stamp cannot be taken back. So a statement that stamps fails before it writes anything if ClickHouse's clock is far ahead of the
 * leader's own (watermark.ts), or if its stamp would be of a day that may not begin yet (days.ts).
 */
function clockFence(databases: Databases, { latest, dayEndsAt }: FoldStep): string {
  const ahead =
    'ClickHouse’s clock says a time that is far ahead of the clock of this process: nothing is folded until they agree'
  const nextDay = 'a day has ended, and the history has to copy its last changes first'
  return `${failsFrom(latest, "now64(3, 'UTC')", ahead)} AND ${failsFrom(dayEndsAt, stampOf(databases), nextDay)}`
}

function failsFrom(at: number | undefined, time: string, text: string): string {
  return at === undefined
    ? 'true'
    : `throwIf(${time} >= fromUnixTimestamp64Milli(${at}, 'UTC'), '${text}') = 0`
}

/** A superseded leader writes nothing. ClickHouse evaluates a scalar subquery when the statement starts; the time limit covers the rest. */
export function fenceOf({ ledger }: Databases, { term }: FoldStep): string {
  return `(SELECT max((epoch, holder)) FROM ${ledger}.fold_epochs) = (${term.epoch}, {holder:String})`
}

/** How a statement ends that is not in `sql/`. */
export function bounds({ msMax }: FoldStep): string {
  return `SETTINGS max_execution_time = ${msMax / 1000}, async_insert = 0`
}

// A piece is one of equal ranges of the ids' hashes, if a statement does not read the touched ids first.
const pieceByHash = 'bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}'
/** How many campaigns such a piece has, about. */
export const campaignsPerPiece = 100_000

/** Fills in what all statements of a fold worker have in common, and the parts of its own, which come first. */
export function fill(
  sql: string,
  databases: Databases,
  step: FoldStep,
  own: Readonly<Record<string, string>> = {},
): string {
  return fillIn(nameDatabases(sql, databases), {
    columns: contentColumns.join(', '),
    fresh_columns: contentColumns.map(name => `fresh.${name}`).join(', '),
    copied_columns: copiedColumns.map(name => `ledger.${name} AS ${name}`).join(', '),
    ...{ kept: '', kept_stamp: '', again: '', is_again: 'false' },
    fence: fenceOf(databases, step),
    piece: pieceByHash,
    clock_fence: clockFence(databases, step),
    stamp: stampOf(databases),
    seconds_max: String(step.msMax / 1000),
    memory_bytes_max: String(step.memoryBytesMax),
    ...own,
  })
}

/** Digits of the platform's currency (ISO 4217). */
export function platformDigitsOf(config: Pick<Config, 'PLEDGEVIEW_PLATFORM_CURRENCY'>): number {
  return currencyDigits(config.PLEDGEVIEW_PLATFORM_CURRENCY) ?? 2
}
