/**
 * The fields of a campaign, from the rows of `campaign_pages` and `campaign_by_slug`, whose fields are JSON
 * (contracts/tables/generation/0003-read-tables.sql), to what the API shows. Pure; the present time is an argument.
 *
 * It has every field of its schema. The schema parses it before it leaves: a campaign of a page here, any other in endpoints/open.ts.
 */
import { daysRemaining } from '../../../contracts/api/conventions.ts'
import {
  type Project,
  type ProjectDetail,
  projectSchema,
  type Reward,
  shownAs,
} from '../../../contracts/api/schemas.ts'
import { columns, type ShownColumns } from '../../../contracts/tables/campaign-columns.ts'
import { assertRow } from './assertions.ts'

export interface ProjectRow extends ShownColumns<'list'> {
  updated_at: string
}

export interface ProjectDetailRow extends ProjectRow, ShownColumns<'detail'> {
  rewards: Reward[]
}

/** A public campaign with its texts, by slug or by id. See `projectDetailRowOf`. */
export interface CampaignBySlugRow extends Omit<ShownColumns<'detail'>, 'rewards'> {
  list_fields: string
  reward_fields: string
}

const numbers = columns.filter(({ type }) => /^(?:UInt|Decimal)/.test(type)).map(({ name }) => name)
const rewardNumbers = ['amount', 'quantity_available', 'quantity_claimed', 'quantity_remaining']

/** A row from its `list_fields`. */
export function projectRowOf(listFields: string): ProjectRow {
  return withNumbers(JSON.parse(listFields), numbers)
}

/** A row with its texts and reward tiers. */
export function projectDetailRowOf({
  list_fields,
  reward_fields,
  ...texts
}: CampaignBySlugRow): ProjectDetailRow {
  const rewards: Reward[] = JSON.parse(reward_fields)
  return {
    ...projectRowOf(list_fields),
    ...texts,
    rewards: rewards.map(reward => withNumbers(reward as Reward & Record<string, unknown>, rewardNumbers)),
  }
}

/** A server may be set to quote numbers, and it wrote the JSON. Changes the object. */
function withNumbers<Row extends Record<string, unknown>>(row: Row, names: readonly string[]): Row {
  for (const name of names) {
    if (typeof row[name] === 'string') (row as Record<string, unknown>)[name] = Number(row[name])
  }
  return row
}

/** A campaign as shown in lists. `now` is in Unix milliseconds. */
export function presentProject(row: ProjectRow, now: number): Project {
  const updated_at = presentTimestamp(row.updated_at)
  const project = { ...presented(row, 'list'), updated_at } as unknown as Project
  return { ...project, days_remaining: daysRemaining(project.end_date, now) }
}

/** A campaign as shown on its own page. */
export function presentProjectDetail(row: ProjectDetailRow, now: number): ProjectDetail {
  return { ...presentProject(row, now), ...presented(row, 'detail') } as ProjectDetail
}

/** What the API shows of a row in this place. */
function presented(row: object, where: 'list' | 'detail'): Record<string, unknown> {
  const values = row as Record<string, unknown>
  return shownAs(where, ({ name, type, default: absent = null }) => {
    // A row that was written before the field was added does not have it.
    const value = values[name] ?? absent
    return type.includes('DateTime64') && typeof value === 'string' ? presentTimestamp(value) : value
  })
}

/** ClickHouse's `2026-03-01 12:00:00.000` (UTC) as `2026-03-01T12:00:00.000Z`. */
export function presentTimestamp(text: string): string {
  return `${text.replace(' ', 'T')}Z`
}

/*
 * A campaign as it stands in a page, already text. It passes its schema once, when its row is read, and not again in each page that
 * shows it: to parse and to serialise took a quarter of the time of a poll. Only `days_remaining` depends on the time, so the text has
 * a gap there.
 */

export interface WrittenCampaign {
  id: string
  /** Unix ms. */
  updatedAt: number
  /** ISO 8601. */
  endDate: string | null
  /** The JSON text before and after the number of `days_remaining`. */
  before: string
  after: string
}

/** This text occurs once, because JSON escapes the quotes inside a title or a name. */
const gap = '"days_remaining":'

/** The campaign of a row. Throws what the schema throws. */
export function writeCampaign(row: ProjectRow): WrittenCampaign {
  const shown = presentProject(row, 0)
  const project = projectSchema.parse(shown)
  assertRow(project, shown)
  const text = JSON.stringify(project)
  const from = text.indexOf(gap) + gap.length
  return {
    id: project.id,
    updatedAt: Date.parse(project.updated_at),
    endDate: project.end_date,
    before: text.slice(0, from),
    after: text.slice(from + String(project.days_remaining).length),
  }
}

/** The JSON text of the campaign. `now`: Unix milliseconds. */
export function writtenAt({ before, endDate, after }: WrittenCampaign, now: number): string {
  return before + daysRemaining(endDate, now) + after
}
