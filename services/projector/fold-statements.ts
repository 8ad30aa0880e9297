/** The statements of the fold, as values. Their text stands in `sql/`; here the names and parameters go in. */
import { readFileSync } from 'node:fs'
import { nameDatabases } from '../shared/tables/migrate.ts'
import type { Databases, Statement } from '../shared/tables/port.ts'
import { holdPrefix } from './fold-hold.ts'

/** How far each projector's batches are folded: run id of the projector -> sequence number, both as in the batch log. */
export type Progress = Readonly<Record<string, number>>

/** Who folds, and under which number of takeover. */
export interface Tenure {
  epoch: bigint
  holder: string
}

/** One fold statement: which campaigns, under whose tenure, within what time. */
export interface FoldStep {
  tenure: Tenure
  foldId: bigint
  /** Share `piece` of `pieces` equal ranges: of the touched ids in order, or to stamp anew of the ids' hashes. */
  pieces: number
  piece: number
  msMax: number
}

export const activeKeysMax = 3

const files = {
  foldCampaigns: readSql('fold-campaigns'),
  foldKeys: readSql('fold-keys'),
  restamp: readSql('restamp'),
  appendFold: readSql('append-fold'),
}

/** The columns that a reader can see, with campaign_id; what content_hash covers. */
export const contentColumns = [
  'campaign_id',
  'slug',
  'url',
  'title',
  'subtitle',
  'category',
  'subcategory',
  'location',
  'image_url',
  'currency',
  'goal_amount',
  'pledged_amount',
  'pledged_platform_amount',
  'percent_funded',
  'backer_count',
  'pledge_count',
  'follower_count',
  'status',
  'campaign_type',
  'project_type',
  'is_staff_pick',
  'has_adult_content',
  'uses_ai',
  'tags',
  'launch_date',
  'end_date',
  'created_at',
  'creator_name',
  'creator_profile_url',
  'creator_avatar_url',
  'description',
  'risks',
  'rewards',
]

/** The batches after `from` up to `to`. */
export interface BatchRange {
  from: Progress
  to: Progress
}

export interface FoldedCampaigns {
  /** Which: those of some batches, or all that the ledger knows. */
  touched: BatchRange | 'all'
  /** Of the platform's currency. */
  platformDigits: number
  /** The model's database whose stamps a row keeps where it comes out as it stands there. */
  stampsFrom?: string | undefined
}

/** Folds campaigns. */
export function foldCampaignsStatement(
  databases: Databases,
  step: FoldStep,
  { touched, platformDigits, stampsFrom }: FoldedCampaigns,
): Statement {
  const { query, parameters } = touchedCampaigns(databases, touched)
  return {
    query: fill(files.foldCampaigns, databases, step, {
      touched: query,
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

function touchedCampaigns({ model }: Databases, touched: FoldedCampaigns['touched']) {
  if (touched === 'all') {
    return { query: `SELECT DISTINCT campaign_id FROM ${model}.campaign_ledger`, parameters: {} }
  }
  return {
    query: `SELECT DISTINCT arrayJoin(campaign_ids) AS campaign_id FROM ${model}.batch_log
        WHERE sequence > {from:Map(String, UInt64)}[projector] AND sequence <= {to:Map(String, UInt64)}[projector]`,
    parameters: { from: touched.from, to: touched.to },
  }
}

export function foldKeysStatement(databases: Databases, step: FoldStep): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.foldKeys, databases, step),
    query_params: { holder, fold_id, active_keys_max: activeKeysMax },
  }
}

/** Stamps anew the rows whose fold_id lies between the two, both exclusive. */
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
    query: fill(files.appendFold, databases, step),
    query_params: {
      holder,
      fold_id,
      folded: done.folded,
      campaigns: done.campaigns,
      elapsed_ms: Math.round(done.elapsedMs),
    },
  }
}

/** Batches that the read tables do not have yet, by projector. */
export function pendingBatchesStatement(databases: Databases, folded: Progress): Statement {
  return {
    query: `SELECT projector, max(batch.sequence) AS sequence, sum(length(campaign_ids)) AS campaigns,
              sum(batch.keys) AS keys, toUnixTimestamp64Milli(min(oldest_at)) AS oldestAt
            FROM ${databases.model}.batch_log AS batch
            WHERE batch.sequence > {folded:Map(String, UInt64)}[projector]
            GROUP BY projector`,
    query_params: { folded },
  }
}

/** How many campaigns the ledger knows, those that are not public included. */
export function knownCampaignsStatement(databases: Databases): Statement {
  return { query: `SELECT uniqExact(campaign_id) AS campaigns FROM ${databases.model}.campaign_ledger` }
}

/** The progress that the fold log holds, by projector. */
export function progressStatement(databases: Databases): Statement {
  return {
    query: `SELECT tupleElement(done, 1) AS projector, max(tupleElement(done, 2)) AS sequence
            FROM ${databases.model}.fold_log ARRAY JOIN folded AS done GROUP BY projector`,
  }
}

/** The highest fold_id that is not in doubt. */
export function confirmedFoldStatement(databases: Databases): Statement {
  return { query: `SELECT toString(max(fold_id)) AS foldId FROM ${databases.model}.fold_log` }
}

/**
 * Takes the next epoch, above `floor`. Two that do so at once get the same; `epochHoldersStatement` tells.
 */
export function takeEpochStatement(databases: Databases, holder: string, floor = 0n): Statement {
  return {
    query: `INSERT INTO ${databases.model}.fold_epochs (epoch, holder)
            SELECT greatest(max(epoch), {floor:UInt64}) + 1, {holder:String} FROM ${databases.model}.fold_epochs
            SETTINGS async_insert = 0`,
    query_params: { holder, floor: floor.toString() },
  }
}

/**
 * Who holds the latest epoch, and how old a hold is (ms, by ClickHouse's clock); more than one row where several took it
 * at once.
 */
export function epochHoldersStatement(databases: Databases): Statement {
  return {
    query: `SELECT toString(taken.epoch) AS epoch, holder,
              if(startsWith(holder, '${holdPrefix}'),
                toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(taken_at), 0) AS ageMs
            FROM ${databases.model}.fold_epochs AS taken
            WHERE taken.epoch = (SELECT max(epoch) FROM ${databases.model}.fold_epochs)`,
  }
}

function stepParameters({ tenure, foldId, pieces, piece }: FoldStep) {
  return { holder: tenure.holder, fold_id: foldId.toString(), pieces, piece }
}

/** Fills what all statements of a folder have in common. */
export function fill(
  sql: string,
  databases: Databases,
  step: FoldStep,
  { touched = '', kept = '', kept_stamp = '' }: { touched?: string; kept?: string; kept_stamp?: string } = {},
): string {
  const columns = contentColumns.join(', ')
  const freshColumns = contentColumns.map(name => `fresh.${name}`).join(', ')
  // A scalar subquery is evaluated when the statement starts; the fold's time bound covers what runs on after that.
  const holds = `(SELECT max((epoch, holder)) FROM ${databases.model}.fold_epochs) = (${step.tenure.epoch}, {holder:String})`
  return nameDatabases(sql, databases)
    .replaceAll('${columns}', columns)
    .replaceAll('${fresh_columns}', freshColumns)
    .replaceAll('${touched}', touched)
    .replaceAll('${kept}', kept)
    .replaceAll('${kept_stamp}', kept_stamp)
    .replaceAll('${holds}', holds)
    .replaceAll('${seconds_max}', String(step.msMax / 1000))
}

function readSql(name: string): string {
  return readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8')
}
