/**
 * What the tables have of the campaigns that are not what the events say, for a failure that happens only in CI: where a change
 * stopped on its way from the log to the read rows.
 */

import { isDeepStrictEqual } from 'node:util'
import { qualified } from '../../../services/tables/generations.ts'
import type { Databases, Shard, Statement } from '../../../services/tables/port.ts'
import type { Reading } from '../model-tables.ts'

const campaignsMax = 3

/** A text of many lines. A query that fails is shown with its error: a shard may be away. */
export async function describeDiffering(
  folded: readonly Shard[],
  { actual, expected }: { actual: Reading; expected: Reading },
): Promise<string> {
  const ids = differingIds(actual.campaigns, expected.campaigns)
  const lines = [`${ids.length} campaigns differ`]
  for (const id of ids.slice(0, campaignsMax)) {
    lines.push(`${id}: expected ${JSON.stringify(rowOf(expected.campaigns, id))}`)
    lines.push(`${id}: shown    ${JSON.stringify(rowOf(actual.campaigns, id))}`)
  }
  for (const [n, { tables, databases }] of folded.entries()) {
    for (const [what, statement] of statementsOf(databases, ids.slice(0, campaignsMax))) {
      const rows = await tables.rows(statement).catch((error: unknown) => [String(error)])
      for (const row of rows) lines.push(`tables ${n + 1}, ${what}: ${JSON.stringify(row)}`)
    }
  }
  return lines.join('\n')
}

function statementsOf(databases: Databases, ids: readonly string[]): [what: string, Statement][] {
  const { ledger, read } = databases
  const query_params = { ids: [...ids] }
  const ofCampaigns = (columns: string, table: string): Statement => ({
    query: `SELECT ${columns} FROM ${qualified(table, databases)} WHERE campaign_id IN {ids:Array(String)} ORDER BY ALL`,
    query_params,
  })
  const whole = (query: string): Statement => ({ query, query_params: {} })
  return [
    // Without FINAL: every version that is not merged yet, and the part that has it.
    [
      'campaign ledger',
      ofCampaigns('campaign_id, version, is_public, status, title, _part', 'campaign_ledger'),
    ],
    [
      'pledge ledger',
      ofCampaigns('campaign_id, pledge_id, version, counts, amount_minor, _part', 'pledge_ledger'),
    ],
    [
      'read rows',
      ofCampaigns(
        'campaign_id, fold_id, updated_at, is_deleted, title, pledged_amount, pledge_count, _part',
        'campaigns',
      ),
    ],
    ['quarantine', whole(`SELECT * FROM ${ledger}.quarantine FINAL ORDER BY fold_id`)],
    [
      'last batches of the campaigns',
      {
        query: `SELECT projector, sequence, appended_at, positions, rejects, keys, _part,
                  arrayIntersect(campaign_ids, {ids:Array(String)}) AS of_campaigns
                FROM ${ledger}.batch_log WHERE hasAny(campaign_ids, {ids:Array(String)}) ORDER BY appended_at DESC LIMIT 20`,
        query_params,
      },
    ],
    [
      'runs of projectors',
      whole(`SELECT projector, min(sequence), max(sequence), count(), max(appended_at) FROM ${ledger}.batch_log
             GROUP BY projector ORDER BY max(appended_at) DESC LIMIT 12`),
    ],
    ['fold progress', whole(`SELECT * FROM ${ledger}.fold_progress ORDER BY fold_id DESC LIMIT 24`)],
    ['positions', whole(`SELECT * FROM ${ledger}.positions FINAL ORDER BY ALL`)],
    ['epochs', whole(`SELECT * FROM ${ledger}.fold_epochs ORDER BY epoch DESC LIMIT 12`)],
    ['watermarks', whole(`SELECT * FROM ${read}.watermarks FINAL`)],
  ]
}

/** The ids of the campaigns whose rows are not the same on both sides. */
function differingIds(actual: readonly unknown[], expected: readonly unknown[]): string[] {
  const ids = new Set([...actual, ...expected].map(idOf))
  return [...ids].filter(id => !isDeepStrictEqual(rowOf(actual, id), rowOf(expected, id)))
}

function rowOf(rows: readonly unknown[], id: string): unknown {
  return rows.find(row => idOf(row) === id)
}

function idOf(row: unknown): string {
  return (row as { campaign_id: string }).campaign_id
}
