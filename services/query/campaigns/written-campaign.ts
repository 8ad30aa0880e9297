/**
 * A campaign as it stands in a page, already text. It passes its schema once, when its row is read, and not again in each page that
 * shows it: to parse and to serialise took a quarter of the time of a poll. Only `days_remaining` depends on the time, so the text has
 * a gap there. Pure.
 */
import { daysRemaining } from '../../../contracts/api/conventions.ts'
import { projectSchema } from '../../../contracts/api/schemas.ts'
import { assertRow } from './assertions.ts'
import { type ProjectRow, presentProject } from './campaign-fields.ts'

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
