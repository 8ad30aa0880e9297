/** Builds the statements of the fold as values. Their text is in `sql/`. This module fills in names and parameters. */
import { contentColumns, copiedColumns } from '../../../contracts/tables/campaign-columns.ts'
import { activeKeysMax } from '../../shared/api-keys/api-keys.ts'
import { nameDatabases } from '../../shared/tables/migrate.ts'
import type { Databases, Statement } from '../../shared/tables/port.ts'
import { readSql } from '../../shared/tables/read-sql.ts'
import { inRange } from './batch-log-statements.ts'
import { pausePrefix, stoppedPrefix } from './fold-pause.ts'

/** How far each projector's batches are folded: the projector's run id -> sequence number, both as in the batch log. */
export type Progress = Readonly<Record<string, number>>

/** The term of a leader: which fold worker folds, and under which epoch. */
export interface Term {
  epoch: bigint
  holder: string
  /** From this stamp on (Unix ms) it may stamp nothing: the day has to be closed first (day-close.ts). `undefined`: no end. */
  until?: number | undefined
}

/** One fold statement: its share of the campaigns, its term, and its limits of time and memory. */
export interface FoldStep {
  term: Term
  foldId: bigint
  /** Share number `piece` of `pieces` equal ranges. A fold splits the touched ids in order; a restamp splits the ids' hashes. */
  pieces: number
  piece: number
  msMax: number
  memoryBytesMax: number
}

const files = {
  foldCampaigns: readSql('fold-campaigns', import.meta.url),
  foldKeys: readSql('fold-keys', import.meta.url),
  pieceCampaigns: readSql('piece-campaigns', import.meta.url),
  restamp: readSql('restamp', import.meta.url),
  recordFold: readSql('record-fold', import.meta.url),
  untilDecided: readSql('until-decided', import.meta.url),
}

/** The batches after `from`, up to and including `to`. */
export interface BatchRange {
  from: Progress
  to: Progress
}

/** The campaigns of some batches, without those that are set aside; or a single one; or all that the ledger knows. */
export type Touched = (BatchRange & { except?: readonly string[] }) | { campaign: string } | 'all'

export interface FoldedCampaigns {
  touched: Touched
  /** Digits of the platform's currency. */
  platformDigits: number
  /** The model database of the live tables. A row keeps its stamp from there if its content is the same. */
  stampsFrom?: string | undefined
  /** Writes to the staged campaigns, which nothing reads before they are published. */
  isStaged?: boolean
}

/** Folds campaigns. */
export function foldCampaignsStatement(
  databases: Databases,
  step: FoldStep,
  { touched, platformDigits, stampsFrom, isStaged = false }: FoldedCampaigns,
): Statement {
  const { query, parameters } = touchedCampaigns(databases, touched)
  // A staged row has no stamp yet, so the end of the day does not concern it.
  const own = isStaged ? { ...step, term: { ...step.term, until: undefined } } : step
  return {
    query: fill(files.foldCampaigns, databases, own, {
      touched: query,
      target: isStaged ? 'staged_campaigns' : 'campaigns',
      // Only the table's TTL reads it. A staged row gets its stamp when it is published.
      ...(isStaged && { staged_stamp: "true, toDateTime64(now('UTC'), 3, 'UTC')," }),
      ...(stampsFrom !== undefined && {
        kept_stamp: 'live.stands AND live.content_hash = new_hash, live.updated_at,',
        kept: `LEFT JOIN
(
    SELECT campaign_id, content_hash, updated_at, true AS stands FROM ${stampsFrom}.campaigns FINAL
    WHERE campaign_id IN (SELECT campaign_id FROM touched)
) AS live ON live.campaign_id = fresh.campaign_id`,
      }),
    }),
    query_params: { ...stepParameters(step), ...parameters, platform_digits: platformDigits },
  }
}

/** The query of the touched campaigns, in any order, and its parameters. */
export function touchedCampaigns({ model }: Databases, touched: Touched) {
  if (touched === 'all') {
    return { query: `SELECT DISTINCT campaign_id FROM ${model}.campaign_ledger`, parameters: {} }
  }
  if ('campaign' in touched) {
    return { query: 'SELECT {campaign:String} AS campaign_id', parameters: { campaign: touched.campaign } }
  }
  const { except = [] } = touched
  const range = inRange(touched)
  const isSplit = except.length > 0
  const ids = isSplit
    ? 'arrayFilter(id -> NOT has({except:Array(String)}, id), campaign_ids)'
    : 'campaign_ids'
  return {
    query: `SELECT DISTINCT arrayJoin(${ids}) AS campaign_id FROM ${model}.batch_log AS batch
        WHERE ${range.condition}`,
    parameters: { ...range.parameters, ...(isSplit && { except }) },
  }
}

/** Which campaigns a piece has: one row {campaigns, first}, their number and the first of them. */
export function pieceCampaignsStatement(
  databases: Databases,
  { pieces, piece }: { pieces: number; piece: number },
  touched: Touched,
): Statement {
  const { query, parameters } = touchedCampaigns(databases, touched)
  return {
    query: files.pieceCampaigns.replaceAll('${touched}', query),
    query_params: { pieces, piece, ...parameters },
  }
}

export function foldKeysStatement(databases: Databases, step: FoldStep): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.foldKeys, databases, step),
    query_params: { holder, fold_id, active_keys_max: activeKeysMax },
  }
}

/** Writes nothing, and succeeds only if no row of the read table is undecided. */
export function untilDecidedStatement(databases: Databases, step: FoldStep): Statement {
  return { query: fill(files.untilDecided, databases, step) }
}

/** Gives a new stamp to the rows whose fold_id lies between the two, both exclusive. */
export function restampStatement(
  databases: Databases,
  step: FoldStep,
  folds: { after: bigint; before: bigint },
): Statement {
  return {
    query: fill(files.restamp, databases, step),
    query_params: {
      ...stepParameters(step),
      after: folds.after.toString(),
      before: folds.before.toString(),
    },
  }
}

/** Records that everything up to `folded` is in the read tables, and that no row up to `foldId` is in doubt. */
export function appendFoldStatement(
  databases: Databases,
  step: FoldStep,
  done: { folded: Progress; campaigns: number; elapsedMs: number },
): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.recordFold, databases, step),
    query_params: {
      holder,
      fold_id,
      folded: done.folded,
      campaigns: done.campaigns,
      elapsed_ms: Math.round(done.elapsedMs),
    },
  }
}

/** Counts the campaigns that the ledger knows, including those that are not public. */
export function knownCampaignsStatement(databases: Databases): Statement {
  return { query: `SELECT uniqExact(campaign_id) AS campaigns FROM ${databases.model}.campaign_ledger` }
}

/** The progress in the fold log, by projector. Projectors without any batch left are not listed. */
export function progressStatement(databases: Databases): Statement {
  return {
    query: `SELECT tupleElement(done, 1) AS projector, max(tupleElement(done, 2)) AS sequence
            FROM ${databases.model}.fold_log ARRAY JOIN folded AS done
            WHERE projector IN (SELECT DISTINCT projector FROM ${databases.model}.batch_log)
            GROUP BY projector`,
  }
}

/** The highest fold_id that is not in doubt. */
export function confirmedFoldStatement(databases: Databases): Statement {
  return { query: `SELECT toString(max(fold_id)) AS foldId FROM ${databases.model}.fold_log` }
}

/**
 * Takes the next epoch, higher than `floor`. Two processes that do so at the same time get the same epoch:
 * `epochHoldersStatement` shows it. Takes none while the fold is stopped (fold-pause.ts), unless it overrides that.
 */
export function takeEpochStatement(
  databases: Databases,
  holder: string,
  floor = 0n,
  { overridesStop = false }: { overridesStop?: boolean } = {},
): Statement {
  const epochs = `${databases.model}.fold_epochs`
  return {
    query: `INSERT INTO ${epochs} (epoch, holder)
            SELECT greatest(max(epoch), {floor:UInt64}) + 1, {holder:String} FROM ${epochs}
            HAVING {overrides_stop:Bool} OR (SELECT countIf(startsWith(holder, '${stoppedPrefix}')) FROM ${epochs}
                WHERE epoch = (SELECT max(epoch) FROM ${epochs})) = 0
            SETTINGS async_insert = 0`,
    query_params: { holder, floor: floor.toString(), overrides_stop: overridesStop },
  }
}

/**
 * The holder of the highest epoch, and the age of a fold pause (ms, by ClickHouse's clock). Gives more than one row if
 * several processes took the epoch at the same time.
 */
export function epochHoldersStatement(databases: Databases): Statement {
  return {
    query: `SELECT toString(taken.epoch) AS epoch, holder,
              if(startsWith(holder, '${pausePrefix}'),
                toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(taken_at), 0) AS ageMs
            FROM ${databases.model}.fold_epochs AS taken
            WHERE taken.epoch = (SELECT max(epoch) FROM ${databases.model}.fold_epochs)`,
  }
}

export function stepParameters({ term, foldId, pieces, piece }: FoldStep) {
  return { holder: term.holder, fold_id: foldId.toString(), pieces, piece }
}

/** The stamp of what a statement changes: ClickHouse's clock, but never below the floor (stamp-floor.ts). */
export function stampOf({ model }: Databases): string {
  return `greatest(now64(3, 'UTC'), (SELECT max(reached) FROM ${model}.stamp_floor))`
}

/**
 * The condition of a statement that stamps campaigns. `own_stamp` is the alias of its stamp, which ClickHouse computes once. The
 * statement fails before it writes anything. If it only wrote nothing, as behind the other fence, and the clock then stepped
 * back, the fold would be recorded without it.
 */
function dayFence({ until }: Term): string {
  if (until === undefined) return 'true'
  return `throwIf(own_stamp >= fromUnixTimestamp64Milli(${until}, 'UTC'), 'the UTC day of this term is over') = 0`
}

/** Fills in what all statements of a fold worker have in common. */
export function fill(
  sql: string,
  databases: Databases,
  step: FoldStep,
  own: Partial<Record<'touched' | 'target' | 'kept' | 'kept_stamp' | 'staged_stamp', string>> = {},
): string {
  const columns = contentColumns.join(', ')
  const freshColumns = contentColumns.map(name => `fresh.${name}`).join(', ')
  const copied = copiedColumns.map(name => `ledger.${name} AS ${name}`).join(', ')
  // ClickHouse evaluates a scalar subquery when the statement starts. The statement's time limit covers the rest.
  const fence = `(SELECT max((epoch, holder)) FROM ${databases.model}.fold_epochs) = (${step.term.epoch}, {holder:String})`
  return nameDatabases(sql, databases)
    .replaceAll('${columns}', columns)
    .replaceAll('${fresh_columns}', freshColumns)
    .replaceAll('${copied_columns}', copied)
    .replaceAll('${touched}', own.touched ?? '')
    .replaceAll('${target}', own.target ?? '')
    .replaceAll('${kept}', own.kept ?? '')
    .replaceAll('${kept_stamp}', own.kept_stamp ?? '')
    .replaceAll('${staged_stamp}', own.staged_stamp ?? '')
    .replaceAll('${fence}', fence)
    .replaceAll('${day_fence}', dayFence(step.term))
    .replaceAll('${stamp}', stampOf(databases))
    .replaceAll('${seconds_max}', String(step.msMax / 1000))
    .replaceAll('${memory_bytes_max}', String(step.memoryBytesMax))
}
