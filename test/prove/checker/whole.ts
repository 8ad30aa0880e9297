/**
 * While nothing is said, every answer is the whole truth: lists in their order, details, statistics and removals are exactly what was said before, and the
 * digest of each first page is that of the rows that were shown. In each quiet time every process has answered an audit.
 * And what each mirror holds at the end is the truth. A campaign of which nothing was said from one quiet time to the next keeps its stamp,
 * whatever happened: also if the tables were built anew.
 */
import { createHash } from 'node:crypto'
import { readModelOf } from '../../support/events/model.ts'
import { expectedProject, type TimelessProject } from '../../support/faults/api-projects.ts'
import { isPublic } from '../../support/faults/campaign-histories.ts'
import type { Answer, Row, Violation } from './log.ts'
import { differenceBetween, parametersOf, slugOf, type World } from './truth.ts'

/** What the audit of a quiet time reads of each process. */
const audited = ['/projects', '/removals', '/stats']
const isOfAudit = ({ reader, status }: Answer) => reader === 'the audit' && status === 200
const nameOf = ({ process, path }: Pick<Answer, 'process' | 'path'>) =>
  `process ${process} ${path.split('?')[0]}`

export function checkWhole(world: World): Violation[] {
  const found: Violation[] = []
  const inQuiet: Answer[] = []
  const processes = new Set(world.answers.map(({ process }) => process))
  for (const { from, to } of world.of('quiet')) {
    const answers = world.answers.filter(one => one.sentAt - one.ageMs >= from && one.receivedAt <= to)
    const [truth, digest] = [truthAt(world, from), digestOf(answers.flatMap(({ rows }) => rows))]
    for (const answer of answers) {
      const text = differenceOf(answer, truth, world) ?? digestDifference(answer, digest)
      if (text) found.push({ rule: 'whole', about: answer.path, text, answers: [answer] })
    }
    const read = new Set(answers.filter(isOfAudit).map(nameOf))
    const unread = [...processes].flatMap(process =>
      audited.map(path => nameOf({ process, path })).filter(name => !read.has(name)),
    )
    for (const about of unread) found.push({ rule: 'whole', about, text: 'nothing was read', answers: [] })
    inQuiet.push(...answers)
  }
  return [...found, ...checkStamps(world, inQuiet), ...checkCopies(world)]
}

/** The digest of these campaigns. Computed as the guide says, and not by the code of the service. */
export function digestOf(rows: readonly Row[]): string {
  const stamps = new Map(rows.map(({ id, updated_at }) => [id, updated_at]))
  const sum = [...stamps]
    .map(([id, stamp]) => createHash('sha256').update(`${id}|${stamp}`).digest().readBigUInt64BE())
    .reduce((before, number) => BigInt.asUintN(64, before + number), 0n)
  return `${stamps.size}-${sum.toString(16).padStart(16, '0')}`
}

function digestDifference({ path, page, digest: told }: Answer, digest: string): string | undefined {
  // Not every campaign may have been shown.
  const isFirst = page?.offset === 0 && digest.startsWith(`${page.total}-`) && path.startsWith('/projects')
  if (!isFirst || /[?&](status|category|updated_since)=/.test(path) || told === digest) return undefined
  return `has the digest ${told} of ${digest}`
}

function checkStamps({ campaigns, isDisturbed }: World, answers: readonly Answer[]): Violation[] {
  const shown = new Map<string, { stamp: string; answer: Answer }>()
  return answers.flatMap(answer =>
    answer.rows.flatMap(({ id, updated_at: stamp }): Violation[] => {
      const before = shown.get(id)
      shown.set(id, { stamp, answer })
      if (!before || before.stamp === stamp) return []
      if (isDisturbed('restore', before.answer.sentAt, answer.receivedAt)) return []
      const isSaid = (at: number) => at >= before.answer.sentAt && at <= answer.receivedAt
      if (campaigns.get(id)?.saidAt.some(isSaid)) return []
      const text = `had the stamp ${before.stamp}, and has ${stamp}; nothing was said of it between`
      return [{ rule: 'stamps', about: id, text, answers: [before.answer, answer] }]
    }),
  )
}

type Truth = ReturnType<typeof truthAt>

function truthAt({ campaigns, of, answers }: World, at: number) {
  const said = of('said').filter(one => one.at <= at)
  const model = readModelOf(said.flatMap(({ events }) => events))
  const rows = new Map([...model.campaigns].map(([id, reading]) => [id, expectedProject(reading)]))
  const { total_raised_minor, projects_failed: _, projects_cancelled: __, ...totals } = model.platform
  const ended = totals.projects_total - totals.projects_live
  const seen = answers.filter(({ receivedAt }) => receivedAt <= at).flatMap(answer => answer.rows)
  return {
    rows,
    // At least those that a reader has seen. Others were public between two folds, or for a moment that nobody saw.
    hidden: new Set(seen.map(({ id }) => id).filter(id => !rows.has(id) && campaigns.has(id))),
    stats: {
      ...totals,
      total_raised: Number(total_raised_minor) / 100,
      success_rate: ended === 0 ? 0 : Math.round((10_000 * totals.projects_funded) / ended) / 100,
      categories: [...model.categories]
        .map(([category, { project_count }]) => ({ category, project_count }))
        .toSorted((a, b) => b.project_count - a.project_count || (a.category < b.category ? -1 : 1)),
    },
  }
}

function differenceOf(answer: Answer, truth: Truth, world: World): string | undefined {
  const { path, status, stats, removals, rows } = answer
  if (stats) return differenceBetween(stats, truth.stats)
  const wrong = rows.map(row => rowDifference(row, truth.rows.get(row.id))).find(text => text !== undefined)
  if (wrong) return wrong
  const slug = slugOf(path)
  if (slug && status === 404 && truth.rows.has(slug)) return `${slug} is not found, and it is public`
  return removals ? removalsDifference(answer, truth, world) : listDifference(answer, truth)
}

function removalsDifference(
  { path, page, removals = [], receivedAt }: Answer,
  truth: Truth,
  { campaigns, isDisturbed }: World,
): string | undefined {
  const wasPublic = (id: string) => campaigns.get(id)?.states.some(({ data }) => isPublic(data))
  const wrong = removals.find(({ id }) => truth.rows.has(id) || !wasPublic(id))
  if (wrong) return `${wrong.id} is among the removals, and is public or never was`
  const isWhole = page && !page.has_more && page.offset === 0 && !path.includes('since=')
  if (!isWhole || isDisturbed('restore', 0, receivedAt)) return undefined
  const missing = truth.hidden.difference(new Set(removals.map(({ id }) => id)))
  return missing.size > 0 ? `${[...missing].slice(0, 3)} are not among the removals` : undefined
}

/** What a list does that its filters and its order forbid. The amounts of one currency, and what depends on the day, are not looked at. */
function listDifference({ page, rows, path }: Answer, truth: Truth): string | undefined {
  if (!page) return undefined
  const asked = parametersOf(path)
  const isDue = ({ status, category }: TimelessProject) =>
    (asked.get('status') ?? status) === status && (asked.get('category') ?? category) === category
  const other = rows.find(row => !isDue(row))
  if (other) return `${other.id} has another status or category`
  const due = [...truth.rows.values()].filter(isDue).length
  const dueHere = Math.max(0, Math.min(page.limit, due - page.offset))
  if (!asked.has('updated_since') && (page.total !== due || rows.length !== dueHere))
    return `has ${rows.length} of ${dueHere} rows at ${page.offset}, and the total is ${page.total} of ${due} campaigns`
  const sort = asked.get('sort') ?? 'newest'
  const rankOf = ({ launch_date, backer_count }: Row) =>
    sort === 'newest' ? Date.parse(launch_date ?? '1900-01-01') : sort === 'most_backed' ? backer_count : 0
  const wrong = rows.find((row, n) => n > 0 && rankOf(row) > rankOf(rows[n - 1] as Row))
  return wrong && `${wrong.id} is not in its place by ${sort}`
}

export function checkCopies(world: World): Violation[] {
  return world.of('copy').flatMap(({ mirror, rows }) => {
    const expected = truthAt(world, Infinity).rows
    const held = new Map(rows.map(row => [row.id, row]))
    return [...new Set([...expected.keys(), ...held.keys()])].flatMap((about): Violation[] => {
      const row = held.get(about)
      const text = row ? rowDifference(row, expected.get(about)) : 'is missing'
      if (text === undefined) return []
      const asked = world.answers.filter(one => one.reader === mirror)
      const last = asked.filter(one => one.rows.some(({ id }) => id === about)).slice(-3)
      return [{ rule: 'mirror', about, text: `${mirror}: ${text}`, answers: last }]
    })
  })
}

function rowDifference(row: Row, expected: object | undefined): string | undefined {
  const text = expected ? differenceBetween(row, expected) : 'is shown, and is not public'
  return text && `${row.id} ${text}`
}
