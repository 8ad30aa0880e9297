/** Builds the statements for campaigns that are set aside, as values. */
import type { Databases, Statement } from '../../shared/tables/port.ts'
import { readSql } from '../../shared/tables/read-sql.ts'
import { inRange } from './batch-log-statements.ts'
import { type BatchRange, type FoldStep, fill, stepParameters } from './fold-statements.ts'

const files = {
  publishStaged: readSql('publish-staged', import.meta.url),
  recordSetAside: readSql('record-set-aside', import.meta.url),
}

/** What the tables record of a campaign that is set aside. */
export interface SetAsideRecord {
  campaign: string
  /** Whether changes may be missing from the read table. */
  isBehind: boolean
  /** How often it could not be folded alone, since it last could. */
  failures: number
  /** Why the last fold of it failed. */
  reason: string
}

/** Shows the row that the statement with the fold_id `stagedId` has staged. */
export function publishStagedStatement(
  databases: Databases,
  step: FoldStep,
  staged: { campaign: string; stagedId: bigint },
): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.publishStaged, databases, step),
    query_params: { holder, fold_id, campaign: staged.campaign, staged_id: staged.stagedId.toString() },
  }
}

/** Drops the row that this statement has staged. */
export function dropStagedStatement({ model }: Databases, stagedId: bigint): Statement {
  return { query: `ALTER TABLE ${model}.staged_campaigns DROP PARTITION ${stagedId}` }
}

export function recordSetAsideStatement(
  databases: Databases,
  step: FoldStep,
  record: SetAsideRecord & { isSetAside: boolean },
): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.recordSetAside, databases, step),
    query_params: {
      holder,
      fold_id,
      campaign: record.campaign,
      is_set_aside: record.isSetAside,
      is_behind: record.isBehind,
      failures: record.failures,
      reason: record.reason,
    },
  }
}

/** The campaigns that are set aside: rows of `SetAsideRecord`. */
export function setAsideStatement({ model }: Databases): Statement {
  return {
    query: `SELECT campaign_id AS campaign, is_behind AS isBehind, failures, reason
            FROM ${model}.set_aside FINAL WHERE is_set_aside ORDER BY campaign_id`,
  }
}

/** Which of these campaigns the batches of a range touch: rows {campaign}. */
export function touchedOfStatement(
  { model }: Databases,
  range: BatchRange,
  campaigns: readonly string[],
): Statement {
  const { condition, parameters } = inRange(range)
  return {
    query: `SELECT DISTINCT arrayJoin(arrayIntersect(campaign_ids, {campaigns:Array(String)})) AS campaign
            FROM ${model}.batch_log AS batch WHERE ${condition}`,
    query_params: { ...parameters, campaigns },
  }
}
