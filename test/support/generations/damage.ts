/** Damages the read tables of a live model, as a bug in a projector would. */
import type { RebuildableModel } from './rebuilds.ts'

/** Runs a statement below on the live read tables. */
export async function damage({ tables, databases }: RebuildableModel, statement: string): Promise<void> {
  await tables.run({ query: statement.replaceAll('LIVE', databases.read) })
}

/** The campaigns c1 and c2 have another title. */
export const spoiltTitle = `INSERT INTO LIVE.campaigns SELECT * REPLACE ('spoilt' AS title, toFixedString('x', 16) AS content_hash)
  FROM LIVE.campaigns FINAL WHERE campaign_id IN ('c1', 'c2')`

/** The campaign c3 is gone. Its removal has a stamp that the clock has not reached. */
export const lostCampaign = `INSERT INTO LIVE.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
  SELECT campaign_id, '', now64(3, 'UTC') + toIntervalMinute(1), fold_id + 1, 1 FROM LIVE.campaigns FINAL WHERE campaign_id = 'c3'`

/** There is a campaign `ghost`, a copy of c4. */
export const inventedCampaign = `INSERT INTO LIVE.campaigns SELECT * REPLACE ('ghost' AS campaign_id) FROM
  (SELECT * FROM LIVE.campaigns FINAL WHERE campaign_id = 'c4')`
