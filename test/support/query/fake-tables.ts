/** Fake tables that answer the query service's statements with any rows, valid or not. */
import type { ProjectDetailRow } from '../../../services/query/campaigns/campaign-fields.ts'
import type { StatsRow } from '../../../services/query/endpoints/stats.ts'
import type { SnapshotRow } from '../../../services/query/lists/list-statements.ts'
import type { Statement, Tables } from '../../../services/tables/port.ts'
import { shownColumns, shownFields } from './campaigns.ts'

const listFields = [...shownColumns('list'), 'updated_at']

type StatementKind = 'snapshot' | 'projects' | 'detail' | 'stats'

/** The reply to each kind of statement. A thrown error fails the statement. */
export type FakeAnswers = Record<StatementKind, (statement: Statement) => unknown[]>

export const detailRow: ProjectDetailRow = {
  ...shownFields('c1'),
  slug: 'a-slug',
  ...{ goal_amount: 1000, pledged_amount: 250.5, percent_funded: 25.05 },
}

export const statsRow: StatsRow = {
  total_raised: 10,
  total_pledges: 2,
  total_backers: 2,
  total_creators: 1,
  projects_total: 1,
  projects_live: 1,
  projects_funded: 0,
  projects_failed: 0,
  projects_cancelled: 0,
  categories: ['Games'],
  category_projects: [1],
  generated_at: '2026-03-01 12:00:00.000',
}

export const snapshotRow: SnapshotRow = {
  ...{ ids: 'c1', total: 1, digest_sum: '255' },
  as_of: '2026-03-01 11:59:55.000',
}

/** A platform with one campaign. Any reply can be replaced. */
export function fakeTables(answers: Partial<FakeAnswers> = {}): { tables: Pick<Tables, 'rows'> } {
  const all: FakeAnswers = {
    snapshot: () => [snapshotRow],
    projects: () => [detailRow],
    detail: ({ query_params }) => (query_params?.slug === detailRow.slug ? [detailRow] : []),
    stats: () => [statsRow],
    ...answers,
  }
  return {
    tables: {
      rows: async <Row>(statement: Statement) => {
        const kind = kindOf(statement)
        const rows = all[kind](statement)
        return (kind === 'projects' || kind === 'detail' ? rows.map(asShown) : rows) as Row[]
      },
    },
  }
}

/** A row of the views for pages and details with these fields, missing and wrong ones included. */
function asShown(fields: unknown): object {
  const row = fields as Record<string, unknown>
  const list = Object.fromEntries(listFields.map(name => [name, row[name] ?? null]))
  return { ...row, list_fields: JSON.stringify(list), reward_fields: JSON.stringify(row.rewards ?? []) }
}

function kindOf({ query }: Statement): StatementKind {
  if (query.includes('groupArray(campaign_id)')) return 'snapshot'
  if (query.includes('platform_totals')) return 'stats'
  return query.includes('{slug:String}') ? 'detail' : 'projects'
}
