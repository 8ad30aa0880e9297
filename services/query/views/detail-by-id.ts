/** The statement of a detail whose campaign is known from the list index. Pure. */
import type { Databases, Statement } from '../../shared/tables/port.ts'
import { fewRows, timeBound } from './statements.ts'

/**
 * One public campaign with its texts and reward tiers, by id: no row, or one of type `CampaignBySlugRow`. It costs half as
 * much as by slug (`projectDetailStatement`), which has to find the id first.
 */
export function detailByIdStatement(id: string, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT list_fields, description, risks, reward_fields
FROM ${databases.model}.campaign_pages
WHERE campaign_id = {id:String}
SETTINGS ${fewRows}, ${timeBound(msMax)}`,
    query_params: { id },
  }
}
