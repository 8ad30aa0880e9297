/**
 * Rows that readers must not see, in parts that are not merged: campaigns as they were before they changed, campaigns that were
 * deleted, and campaigns that are hidden. And a question to every public view that names each row that the view shows.
 */
import { defaultDatabases, qualified } from '../../../services/tables/generation-log.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { askClickHouse, type ClickHouseAddress, insertJson } from './clickhouse.ts'

const { base, views } = defaultDatabases
const tombstone = '18446744073709551615'
const day = '2026-01-01'
const nextDay = '2026-01-02'
// On a cluster, each shard gets some of them.
const families = ['a', 'b', 'c', 'd']

type Rows = readonly object[]

/** Each entry is one insert, and so one part of each table. */
const parts: readonly [table: string, rows: Rows][] = [
  ['campaigns', each(['kept', 'old', 'gone', 'hidden'], shownRow)],
  ['campaigns', each(['new'], (slug, id) => ({ ...shownRow(slug, id), fold_id: 2 }))],
  ['campaigns', each(['gone', 'hidden'], removedRow)],
  ['pledge_ledger', each(['kept', 'old', 'gone', 'hidden'], (slug, id) => pledgeRow(slug, id, 1))],
  ['pledge_ledger', each(['new', 'gone'], (slug, id) => pledgeRow(slug, id, 2))],
  ['campaign_ledger', each(['kept', 'new', 'gone', 'hidden'], (_, id) => ({ campaign_id: id, version: 1 }))],
  ['campaign_ledger', each(['gone'], (_, id) => ({ campaign_id: id, version: tombstone }))],
  [
    'campaign_days',
    each(['kept', 'old', 'gone', 'hidden'], (slug, id) => dayRow(slug, id, `${day} 10:00:00`)),
  ],
  ['campaign_days', each(['new'], (slug, id) => dayRow(slug, id, `${day} 11:00:00`))],
]

/** `old` and `new` are two versions of one campaign. */
function each(names: readonly string[], row: (slug: string, id: string) => object): Rows {
  return families.flatMap(family =>
    names.map(name =>
      row(`${name}-${family}`, `${{ old: 'changed', new: 'changed' }[name] ?? name}-${family}`),
    ),
  )
}

function shownRow(slug: string, id: string): object {
  return {
    campaign_id: id,
    slug,
    title: slug,
    category: slug,
    status: 'LIVE',
    currency: 'USD',
    creator_id: slug,
    rewards: [{ reward_id: slug, title: slug, amount: 1 }],
    pledge_count: 1,
    pledged_platform_amount: 1,
    ...{ updated_at: `${day} 10:00:00`, fold_id: 1 },
  }
}

function removedRow(_: string, id: string): object {
  return { campaign_id: id, updated_at: `${day} 12:00:00`, fold_id: 2, is_deleted: 1 }
}

function pledgeRow(slug: string, id: string, version: number): object {
  return {
    campaign_id: id,
    pledge_id: slug.slice(-1),
    version,
    counts: version === 1,
    backer_hash: slug.length,
  }
}

function dayRow(slug: string, id: string, updatedAt: string): object {
  return {
    campaign_id: id,
    day: updatedAt.slice(0, 10),
    source: 'kept',
    updated_at: updatedAt,
    status: 'LIVE',
    category: slug,
    ...{ currency: 'USD', pledged_platform_amount: 1, backer_count: 1, pledge_count: 1 },
  }
}

/** Writes the rows to these databases, or to those of the whole. Nothing may merge. */
export async function writeUnmerged(address: ClickHouseAddress, databases: Databases): Promise<void> {
  for (const [table, rows] of parts) await insertJson(address, qualified(table, databases), rows)
}

/** Says that the days of the rows are over, on one server. */
export async function endDays(address: ClickHouseAddress): Promise<void> {
  const noted = `toDateTime64('${nextDay} 00:00:00', 3, 'UTC')`
  await askClickHouse(
    address,
    `INSERT INTO ${base}.history_marks SELECT 'own', ${noted}, ${noted}, '${day}' SETTINGS async_insert = 0`,
  )
}

const slugs = `(${families.flatMap(family => ['kept', 'old', 'new', 'gone', 'hidden'].map(slug => `'${slug}-${family}'`))})`
const questions: readonly [view: string, row: string, condition?: string][] = [
  ['campaigns', 'campaign_id, slug'],
  ['campaigns', "'by slug', campaign_id, slug", `slug IN ${slugs}`],
  ['campaigns', "'by the slug of a deleted one', campaign_id", "slug = 'gone-a'"],
  ['campaigns', "'by a former slug', campaign_id", "slug = 'old-b' AND status = 'LIVE'"],
  ['campaigns', "'by id', campaign_id, slug", "campaign_id IN ('kept-a', 'changed-b', 'gone-c', 'hidden-d')"],
  ['campaigns', "'by title', campaign_id, slug", "title != 'kept-a'"],
  ['campaigns', "'by an error', campaign_id", failsUnless('campaign_id', 'kept|changed')],
  ['campaigns', "'by an error', slug", failsUnless('slug', 'kept|new')],
  ['campaigns', "'by an error and a key', slug", `${failsUnless('slug', 'kept|new')} AND campaign_id > 'k'`],
  ['rewards', 'campaign_id, reward_id'],
  [
    'rewards',
    "'by an error and a key', reward_id",
    `${failsUnless('reward_id', 'kept|new')} AND campaign_id > 'k'`,
  ],
  ['rewards', "'by id', campaign_id", `reward_id IN ${slugs}`],
  ['categories', 'category, toString(project_count)'],
  ['categories', "'by name', category", "category != 'kept-a'"],
  ['categories', "'by an error', category", failsUnless('category', 'kept|new')],
  ['platform_totals', 'toString(projects_total), toString(total_creators), toString(total_backers)'],
  ['about', 'toString(campaigns)'],
  ['campaign_days', 'campaign_id, category, toString(toUInt32(day))', `category IN ${slugs}`],
  ['campaign_days', "'by an error', campaign_id", failsUnless('campaign_id', 'kept|changed')],
  ['category_funding_days', 'category, toString(toUInt32(day)), toString(new_pledge_count)'],
  ['funding_days', 'toString(toUInt32(day)), toString(new_pledge_count)'],
]

/** Its error names the value: `Cannot parse string 'gone-a' as Int32`. The question itself has none of the names. */
function failsUnless(column: string, prefixes: string): string {
  return `toInt32(if(match(${column}, '^((${prefixes})-|$)'), '1', ${column})) = 1`
}

/** A query with one row: the names of all rows that these views show. */
export function whatIsShown(
  isView: (view: string) => boolean,
  isCondition: (condition: string) => boolean = () => true,
): string {
  const selects = questions
    .filter(([view, , condition = '1']) => isView(view) && isCondition(condition))
    .map(
      ([view, row, condition = '1']) =>
        `SELECT concatWithSeparator(' ', '${view}', ${row}) AS shown FROM ${views}.${view} WHERE ${condition}`,
    )
  return `SELECT arrayStringConcat(arraySort(groupArray(shown)), '\n') AS names FROM (${selects.join(' UNION ALL ')})`
}
