/** Each answer alone: what every response promises, the statuses that it may have, and statistics that agree with themselves. */
import type { Stats } from '../../../contracts/api/client/bodies.ts'
import type { Answer, Violation } from './log.ts'
import { parametersOf, slugOf, type World } from './truth.ts'

/** No answer, or one of a process that has not read the keys yet, or whose statements waited while it stood still. */
const unready = new Set([0, 401, 500])
/** The clocks of ClickHouse and of the readers may differ by this. */
const clockMs = 1_000

export function checkAnswers(world: World): Violation[] {
  return world.answers.flatMap(answer => {
    const text = faultOf(answer, world)
    return text === undefined ? [] : [{ rule: 'answers', about: answer.path, text, answers: [answer] }]
  })
}

function faultOf(answer: Answer, { isDisturbed }: World): string | undefined {
  const { status, expected, broken, sentAt, receivedAt, process, page, removals, stats, ageMs } = answer
  const isExcused =
    (unready.has(status) && isDisturbed('silence', sentAt, receivedAt, process)) ||
    (status === 500 && isDisturbed('errors', sentAt, receivedAt))
  if (!expected.includes(status) && !isExcused) return `has the status ${status}: ${broken ?? ''}`
  if (broken !== undefined && status !== 0) return broken
  const slug = slugOf(answer.path)
  if (slug && answer.rows.some(({ id }) => id !== slug)) return 'is another campaign'
  if (page) {
    const { total, limit, offset, has_more } = page
    const rows = (removals ?? answer.rows).length
    const due = Math.max(0, Math.min(limit, total - offset))
    if (has_more !== offset + limit < total) return `has_more is ${has_more} at ${offset} of ${total}`
    // A campaign that left leaves a gap in its page. A removal does not.
    if (rows > due || (removals && rows < due)) return `has ${rows} rows at ${offset} of ${total}`
  }
  const category = parametersOf(answer.path).get('category')
  if (category && answer.rows.some(row => row.category !== category)) return 'has rows of another category'
  if (stats && !isReconciled(stats)) return `does not reconcile: ${JSON.stringify(stats)}`
  const computedAt = Date.parse(stats?.generated_at ?? '')
  const isOther = computedAt < sentAt - ageMs - clockMs || computedAt > receivedAt + clockMs
  return isOther && !isDisturbed('errors', sentAt - ageMs, receivedAt)
    ? `was computed at ${stats?.generated_at}`
    : undefined
}

function isReconciled(stats: Stats): boolean {
  const { categories, projects_total, projects_live, projects_funded, total_raised, total_pledges } = stats
  const cents = Math.round(100 * total_raised)
  const average =
    total_pledges === 0 ? 0 : Math.floor((2 * cents + total_pledges) / (2 * total_pledges)) / 100
  const ofCategories = categories.reduce((sum, { project_count }) => sum + project_count, 0)
  return (
    ofCategories === projects_total &&
    stats.total_backers <= total_pledges &&
    stats.total_creators <= projects_total &&
    projects_live + projects_funded <= projects_total &&
    stats.average_pledge === average
  )
}
