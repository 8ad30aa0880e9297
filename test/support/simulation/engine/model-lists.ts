/** The statements of the query service in the model of ClickHouse. */
import { crc32 } from 'node:zlib'
import { digestNumber } from '../../../../services/query/lists/digest.ts'
import { idSeparator, noDate, severalChanges } from '../../../../services/query/lists/list-statements.ts'
import type { Statement } from '../../../../services/tables/port.ts'
import { shownColumns } from '../../query/campaigns.ts'
import type { Safeguards } from '../safeguards.ts'
import { latestRow, type ModelState, type ReadRow, standingRow, standingRows } from './model-state.ts'

const listFields = [...shownColumns('list'), 'updated_at']

/** All that match, newest first, in one row. */
export function snapshotRows(
  state: ModelState,
  { query_params }: Statement,
  startedAt: number,
  safeguards: Safeguards,
): object[] {
  const since =
    Number(query_params?.updated_since ?? Number.NEGATIVE_INFINITY) + (safeguards.inclusiveBound ? 0 : 1)
  const rows = standingRows(state)
    .filter(({ updatedAt }) => updatedAt >= since)
    .sort((a, b) => launchOf(b) - launchOf(a))
  const ids = rows.map(({ id }) => id).join(idSeparator)
  const asOf = clickHouseTime(watermarkOf(state, startedAt, safeguards))
  let sum = 0n
  for (const { id, updatedAt } of rows) sum += digestNumber(id, updatedAt)
  const ofAll = query_params?.updated_since === undefined && { digest_sum: String(BigInt.asUintN(64, sum)) }
  return [{ ids, total: rows.length, as_of: asOf, ...ofAll }]
}

function watermarkOf({ watermark }: ModelState, startedAt: number, { line }: Safeguards): number {
  return line ? watermark : Math.max(watermark, startedAt)
}

/** The list fields of the public campaigns among these ids. */
export function projectRows(state: ModelState, { query_params }: Statement): object[] {
  const { ids } = query_params as { ids: string[] }
  return ids.flatMap(id => {
    const row = standingRow(state, id)
    return row === undefined ? [] : projectRow(row)
  })
}

/** All that left since then, the earliest first, in one row. The removals of a world are complete. */
export function removalsRows(
  state: ModelState,
  { query_params }: Statement,
  startedAt: number,
  safeguards: Safeguards,
): object[] {
  const { since, kept_ms } = query_params as { since: number; kept_ms: number }
  const reached = watermarkOf(state, startedAt, safeguards)
  const keptSince = Math.max(completeSince, reached - kept_ms)
  const gone = [...state.campaigns.keys()]
    .flatMap(id => latestRow(state, id) ?? [])
    .filter(({ isDeleted, updatedAt }) => isDeleted && updatedAt >= Math.max(since, keptSince))
    .sort((a, b) => a.updatedAt - b.updatedAt || (a.id < b.id ? -1 : 1))
  return [
    {
      ids: gone.map(({ id, updatedAt }) => `${updatedAt} ${id}`).join(idSeparator),
      total: gone.length,
      kept_since: keptSince,
      as_of: clickHouseTime(reached),
    },
  ]
}

/** Before every world, Unix ms. */
export const completeSince = Date.UTC(2000)

/** Which campaigns have a row that was stamped since then, public or not, merged or not. */
export function changesRows(
  state: ModelState,
  statement: Statement,
  startedAt: number,
  safeguards: Safeguards,
): object[] {
  const { query_params } = statement
  const { since, ids_max } = query_params as { since: number; ids_max: number }
  const changed = [...state.campaigns]
    .map(([id, rows]) => ({ id, stamps: rows.flatMap(row => (row.updatedAt >= since ? row.updatedAt : [])) }))
    .filter(({ stamps }) => stamps.length > 0)
    .slice(0, ids_max)
  return [
    {
      read_at: startedAt,
      as_of: watermarkOf(state, startedAt, safeguards),
      ids: changed.map(({ id }) => id),
      stamps: changed.map(({ stamps }) => {
        const newest = Math.max(...stamps)
        return Math.min(...stamps) === newest ? newest : severalChanges
      }),
      total: totalOf(state, statement),
    },
  ]
}

export function changedEntries(state: ModelState, statement: Statement): object[] {
  const { changed_ids: ids } = statement.query_params as { changed_ids: string[] }
  const entries = entriesOf(ids.flatMap(id => standingRow(state, id) ?? []))
  return [{ ...entries, total: totalOf(state, statement) }]
}

/** The number of public campaigns, if the statement asks for it. */
function totalOf(state: ModelState, { query }: Statement): number | null {
  return query.includes('count()') ? standingRows(state).length : null
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

function entriesOf(rows: readonly ReadRow[]): object {
  return {
    ids: rows.map(({ id }) => id),
    statuses: rows.map(({ campaign }) => campaign.columns.status),
    categories: rows.map(({ campaign }) => campaign.columns.category),
    slug_codes: rows.map(({ campaign }) => crc32(String(campaign.columns.slug))),
    launch_dates: rows.map(({ campaign }) => momentOf(campaign.columns.launch_date)),
    end_dates: rows.map(({ campaign }) => momentOf(campaign.columns.end_date)),
    pledged: rows.map(() => 0),
    backers: rows.map(() => 0),
    updates: rows.map(({ updatedAt }) => updatedAt),
  }
}

/** As the view `campaign_pages` has it. There are no pledges in the simulation. */
function projectRow({ id, updatedAt, campaign }: ReadRow): object {
  const columns = Object.fromEntries(
    Object.entries(campaign.columns).map(([name, value]) => [
      name,
      typeof value === 'bigint' ? Number(value) : value,
    ]),
  )
  const row: Record<string, unknown> = {
    ...columns,
    campaign_id: id,
    launch_date: shownMoment(columns.launch_date),
    end_date: shownMoment(columns.end_date),
    created_at: shownMoment(columns.created_at),
    goal_amount: Number(columns.goal_amount_minor) / 10 ** Number(columns.currency_digits),
    pledged_amount: 0,
    percent_funded: 0,
    backer_count: 0,
    updated_at: clickHouseTime(updatedAt),
  }
  const fields = Object.fromEntries(listFields.map(name => [name, row[name] ?? null]))
  // ClickHouse escapes slashes in JSON.
  return { campaign_id: id, list_fields: JSON.stringify(fields).replaceAll('/', '\\/') }
}

function launchOf({ campaign }: ReadRow): number {
  return momentOf(campaign.columns.launch_date)
}

function momentOf(moment: unknown): number {
  return typeof moment === 'number' ? moment : noDate
}

function shownMoment(moment: unknown): string | null {
  return typeof moment === 'number' ? clickHouseTime(moment) : null
}

/** Unix milliseconds as ClickHouse shows them. */
export function clickHouseTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '')
}
