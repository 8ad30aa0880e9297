/** Changes campaigns of the bench's platform as a fold would: it inserts changed rows with a new stamp in one step. */
import type { Databases, Tables } from '../../../services/tables/port.ts'

export interface ChangesDependencies {
  tables: Pick<Tables, 'run'>
  databases: Databases
  /** The number of public campaigns. */
  campaigns: number
}

/** Changes `count` campaigns, in turn. Each gets one more backer and some money. */
export type ChangeCampaigns = (count: number) => Promise<void>

// Far from one another, because changes of a real platform are not neighbours in the table either. Coprime to round numbers.
const stride = 7_919

export function createChanges({ tables, databases, campaigns }: ChangesDependencies): ChangeCampaigns {
  let changed = 0
  return async count => {
    const from = changed
    changed += count
    await tables.run({
      query: `INSERT INTO ${databases.read}.campaigns
SELECT * REPLACE (
    fold_id + 1 AS fold_id,
    backer_count + 1 AS backer_count,
    pledged_platform_amount + 25 AS pledged_platform_amount,
    now64(3, 'UTC') AS updated_at
)
FROM ${databases.read}.campaigns FINAL
WHERE campaign_id IN (
    SELECT concat('cmp_', leftPad(toString(({from:UInt64} + number) * {stride:UInt64} % {campaigns:UInt64}), 7, '0'))
    FROM numbers({count:UInt64})
)
SETTINGS async_insert = 0, optimize_move_to_prewhere_if_final = 1`,
      query_params: { from, count, stride, campaigns },
    })
  }
}
