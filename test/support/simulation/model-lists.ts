/** The statements of the query service, as the model of ClickHouse answers them. */
import { idSeparator, noDate } from '../../../services/query/statements.ts'
import type { Statement } from '../../../services/shared/tables/port.ts'
import { type ModelState, type ReadRow, standingRow, standingRows } from './model-state.ts'

/** Of the model's lists. */
export interface ListRules {
  /** Whether `updated_since` finds what changed in that very millisecond. */
  isBoundInclusive: boolean
}

/** All that match, newest first, in one row. */
export function snapshotRows(
  state: ModelState,
  { query_params }: Statement,
  startedAt: number,
  { isBoundInclusive }: ListRules,
): object[] {
  const since = Number(query_params?.updated_since ?? Number.NEGATIVE_INFINITY) + (isBoundInclusive ? 0 : 1)
  const ids = standingRows(state)
    .filter(({ updatedAt }) => updatedAt >= since)
    .sort((a, b) => launchOf(b) - launchOf(a))
    .map(({ id }) => id)
  const asOf = clickHouseTime(startedAt - Number(query_params?.horizon_ms))
  return [{ ids: ids.join(idSeparator), total: ids.length, as_of: asOf }]
}

/** The list fields of those of the ids that are public. */
export function projectRows(state: ModelState, { query_params }: Statement): object[] {
  const { ids } = query_params as { ids: string[] }
  return ids.flatMap(id => {
    const row = standingRow(state, id)
    return row === undefined ? [] : projectRow(row)
  })
}

/** Which campaigns have a row that is stamped since, public or not, merged or not. */
export function changesRows(state: ModelState, { query_params }: Statement, startedAt: number): object[] {
  const { since, ids_max } = query_params as { since: number; ids_max: number }
  return [
    {
      read_at: startedAt,
      ids: changedIds(state, since).slice(0, ids_max),
      total: standingRows(state).length,
    },
  ]
}

export function changedEntries(state: ModelState, { query_params }: Statement): object[] {
  const changed = changedIds(state, Number(query_params?.since))
  return [
    { ...entriesOf(changed.flatMap(id => standingRow(state, id) ?? [])), total: standingRows(state).length },
  ]
}

export function nextEntries(state: ModelState, { query_params }: Statement): object[] {
  const { after, rows_max } = query_params as { after: string; rows_max: number }
  return [
    entriesOf(
      standingRows(state)
        .filter(({ id }) => id > after)
        .slice(0, rows_max),
    ),
  ]
}

function changedIds({ campaigns }: ModelState, since: number): string[] {
  return [...campaigns].flatMap(([id, rows]) => (rows.some(row => row.updatedAt >= since) ? id : []))
}

function entriesOf(rows: readonly ReadRow[]): object {
  return {
    ids: rows.map(({ id }) => id),
    statuses: rows.map(({ campaign }) => campaign.columns.status),
    categories: rows.map(({ campaign }) => campaign.columns.category),
    launch_dates: rows.map(({ campaign }) => momentOf(campaign.columns.launch_date)),
    end_dates: rows.map(({ campaign }) => momentOf(campaign.columns.end_date)),
    pledged: rows.map(() => 0),
    backers: rows.map(() => 0),
    updates: rows.map(({ updatedAt }) => updatedAt),
  }
}

// Nobody pledges in the simulation.
function projectRow({ id, updatedAt, campaign }: ReadRow): object {
  const { columns } = campaign
  return {
    ...columns,
    campaign_id: id,
    goal_amount: Number(columns.goal_amount_minor) / 10 ** Number(columns.currency_digits),
    pledged_amount: 0,
    percent_funded: 0,
    backer_count: 0,
    follower_count: Number(columns.follower_count),
    updated_at: clickHouseTime(updatedAt),
  }
}

function launchOf({ campaign }: ReadRow): number {
  return momentOf(campaign.columns.launch_date)
}

function momentOf(text: unknown): number {
  return typeof text === 'string' ? Date.parse(`${text.replace(' ', 'T')}Z`) : noDate
}

/** Unix milliseconds as ClickHouse shows them. */
export function clickHouseTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '')
}
