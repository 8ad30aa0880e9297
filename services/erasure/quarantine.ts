/** What a purge says of campaigns in quarantine: they show what they last were until they can be folded. */
import type { Databases, Tables } from '../tables/port.ts'
import { leftOver, type PurgedCopy, unreached } from './report.ts'

/** No entry if no campaign is in quarantine. */
export async function purgeQuarantine(tables: Tables, { ledger }: Databases): Promise<PurgedCopy[]> {
  const campaigns = await tables.rows<{ id: string; failures: number }>({
    query: `SELECT campaign_id AS id, failures FROM ${ledger}.quarantine FINAL WHERE is_quarantined
              AND campaign_id IN (SELECT campaign_id FROM ${ledger}.campaign_ledger FINAL WHERE is_public)
            ORDER BY id`,
  })
  return campaigns.map(({ id, failures }) =>
    failures > 0
      ? unreached(
          `campaign ${id}`,
          'it is in quarantine: what it last showed stays visible until it can be folded',
        )
      : leftOver(
          `campaign ${id}`,
          'nothing',
          'what changed since its last fold: it is in quarantine, so run the purge again after some minutes',
          null,
        ),
  )
}
