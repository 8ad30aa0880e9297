/**
 * While nothing is said, every answer is the whole truth: lists in their order, details, statistics and removals are exactly what was said before, and the
 * digest of each first page is that of the rows that were shown.
 * And what each mirror holds at the end is the truth. A campaign of which nothing was said from one quiet time to the next keeps its stamp,
 * whatever happened: also if the tables were built anew.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { readModelOf } from '../../support/events/model.ts'
import { expectedProject, type TimelessProject } from '../../support/faults/api-projects.ts'
import { isPublic } from '../../support/faults/campaign-histories.ts'
import type { Answer, Quiet, Row, Violation } from './log.ts'
import type { World } from './truth.ts'

export function checkWhole(world: World): Violation[] {
  const { answers, quiets } = world
  let first = 0
  const inQuiet = quiets.flatMap(({ from, to }): Violation[] => {
    const truth = truthAt(world, from)
    while ((answers[first]?.receivedAt ?? Number.POSITIVE_INFINITY) < from) first++
    const found: Violation[] = []
    for (let n = first; (answers[n]?.receivedAt ?? Number.POSITIVE_INFINITY) <= to; n++) {
      const answer = answers[n] as Answer
      const text = answer.sentAt - answer.ageMs >= from ? differenceOf(answer, truth, world) : undefined
      if (text !== undefined) found.push({ rule: 'whole', about: answer.path, text, answers: [answer] })
    }
    return found
  })
  return [...inQuiet, ...checkDigests(world), ...checkStamps(world), ...checkCopies(world)]
}

function answersIn({ from, to }: Quiet, answers: readonly Answer[]): Answer[] {
  return answers.filter(({ sentAt, ageMs, receivedAt }) => sentAt - ageMs >= from && receivedAt <= to)
}

function checkDigests(world: World): Violation[] {
  return world.quiets.flatMap(quiet => {
    const all = answersIn(quiet, world.answers)
    const stamps = new Map(all.flatMap(world.rowsOf).map(({ id, updated_at }) => [id, updated_at]))
    // Computed as the guide says, and not by the code of the service.
    const numbers = [...stamps].map(([id, stamp]) =>
      createHash('sha256').update(`${id}|${stamp}`).digest().readBigUInt64BE(),
    )
    const sum = BigInt.asUintN(
      64,
      numbers.reduce((before, number) => before + number, 0n),
    )
    const digest = `${stamps.size}-${sum.toString(16).padStart(16, '0')}`
    return all.flatMap((answer): Violation[] => {
      const { path, page, digest: told } = answer
      // Not every campaign may have been shown.
      const isFirst = page?.offset === 0 && page.total === stamps.size && path.startsWith('/projects')
      if (!isFirst || /[?&](status|category|updated_since)=/.test(path) || told === digest) return []
      return [{ rule: 'whole', about: path, text: `has the digest ${told} of ${digest}`, answers: [answer] }]
    })
  })
}

function checkStamps({ log, answers, rowsOf, quiets, isDisturbed }: World): Violation[] {
  const said = log.entries.flatMap(entry =>
    entry.kind === 'said' ? entry.events.map(({ key }) => ({ id: key.split('/')[0], at: entry.at })) : [],
  )
  const saidOf = Map.groupBy(said, ({ id }) => id)
  const shown = new Map<string, { stamp: string; answer: Answer }>()
  return quiets.flatMap(quiet =>
    answersIn(quiet, answers).flatMap(answer =>
      rowsOf(answer).flatMap(({ id, updated_at: stamp }): Violation[] => {
        const before = shown.get(id)
        shown.set(id, { stamp, answer })
        if (!before || before.stamp === stamp) return []
        if (isDisturbed('restore', before.answer.sentAt, answer.receivedAt)) return []
        if (saidOf.get(id)?.some(({ at }) => at >= before.answer.sentAt && at <= answer.receivedAt)) return []
        const text = `had the stamp ${before.stamp}, and has ${stamp}; nothing was said of it between`
        return [{ rule: 'stamps', about: id, text, answers: [before.answer, answer] }]
      }),
    ),
  )
}

interface Truth {
  rows: ReadonlyMap<string, TimelessProject>
  hidden: ReadonlySet<string>
  stats: Readonly<Record<string, unknown>>
}

function truthAt({ campaigns, eventsUntil, answers, rowsOf }: World, at: number): Truth {
  const model = readModelOf(eventsUntil(at))
  const rows = new Map([...model.campaigns].map(([id, reading]) => [id, expectedProject(reading)]))
  const { platform } = model
  const statuses = [...rows.values()].map(({ status }) => status)
  const ended = statuses.filter(status => status !== 'LIVE').length
  const categories = Map.groupBy(rows.values(), ({ category }) => category)
  const seen = answers.filter(({ receivedAt }) => receivedAt <= at).flatMap(answer => rowsOf(answer))
  return {
    rows,
    // At least those that a reader has seen. Others were public between two folds, or for a moment that nobody saw.
    hidden: new Set(seen.map(({ id }) => id).filter(id => !rows.has(id) && campaigns.has(id))),
    stats: {
      projects_total: platform.projectsTotal,
      projects_live: platform.projectsLive,
      projects_funded: platform.projectsFunded,
      total_pledges: platform.totalPledges,
      total_backers: platform.totalBackers,
      total_creators: platform.totalCreators,
      total_raised: Number(platform.totalRaisedMinor) / 100,
      success_rate: ended === 0 ? 0 : Math.round((10_000 * platform.projectsFunded) / ended) / 100,
      categories: [...categories]
        .map(([category, all]) => ({ category, project_count: all.length }))
        .toSorted((a, b) => b.project_count - a.project_count || (a.category < b.category ? -1 : 1)),
    },
  }
}

function differenceOf(
  answer: Answer,
  truth: Truth,
  { rowsOf, campaigns, isDisturbed }: World,
): string | undefined {
  const { path, status, page, stats, removals } = answer
  if (stats) {
    const wrong = Object.entries(truth.stats).filter(
      ([name, value]) => !isDeepStrictEqual(stats[name as keyof typeof stats], value),
    )
    return wrong.length === 0
      ? undefined
      : `the platform has ${JSON.stringify(Object.fromEntries(wrong))}, shown is ${JSON.stringify(stats)}`
  }
  for (const row of rowsOf(answer)) {
    const text = rowDifference(row, truth.rows.get(row.id))
    if (text) return text
  }
  const slug = /^\/projects\/slug-([^/?]+)$/.exec(path)?.[1]
  if (slug && status === 404 && truth.rows.has(slug)) return `${slug} is not found, and it is public`
  if (removals) {
    const wrong = removals.find(
      ({ id }) => truth.rows.has(id) || !campaigns.get(id)?.states.some(({ data }) => isPublic(data)),
    )
    if (wrong) return `${wrong.id} is among the removals, and is public or never was`
    const isRestored = isDisturbed('restore', 0, answer.receivedAt)
    const isWhole = !isRestored && page && !page.has_more && page.offset === 0 && !path.includes('since=')
    const shown = new Set(removals.map(({ id }) => id))
    const missing = isWhole ? [...truth.hidden].filter(id => !shown.has(id)) : []
    return missing.length > 0 ? `${missing.slice(0, 3)} are not among the removals` : undefined
  }
  return page && listDifference(page.total, rowsOf(answer), new URLSearchParams(path.split('?')[1]), truth)
}

/** What a list does that its filters and its order forbid. The amounts of one currency, and what depends on the day, are not looked at. */
function listDifference(
  total: number,
  rows: readonly Row[],
  asked: URLSearchParams,
  truth: Truth,
): string | undefined {
  const isDue = ({ status, category }: TimelessProject) =>
    (asked.get('status') ?? status) === status && (asked.get('category') ?? category) === category
  const other = rows.find(row => !isDue(row))
  if (other) return `${other.id} has another status or category`
  const due = [...truth.rows.values()].filter(isDue).length
  if (!asked.has('updated_since') && total !== due) return `the total is ${total} of ${due} campaigns`
  const sort = asked.get('sort') ?? 'newest'
  const rankOf = ({ launch_date, backer_count }: Row) =>
    sort === 'newest' ? Date.parse(launch_date ?? '1900-01-01') : sort === 'most_backed' ? backer_count : 0
  const wrong = rows.find((row, n) => n > 0 && rankOf(row) > rankOf(rows[n - 1] as Row))
  return wrong && `${wrong.id} is not in its place by ${sort}`
}

function checkCopies(world: World): Violation[] {
  const copies = world.log.entries.filter(entry => entry.kind === 'copy')
  const expected =
    copies.length > 0 ? truthAt(world, Number.POSITIVE_INFINITY).rows : new Map<string, object>()
  return copies.flatMap(({ mirror, rows }) => {
    const held = new Map(rows.map(n => [world.log.rows[n]?.id ?? '', world.log.rows[n] as Row]))
    return [...new Set([...expected.keys(), ...held.keys()])].flatMap((id): Violation[] => {
      const row = held.get(id)
      const text = row ? rowDifference(row, expected.get(id)) : `${mirror} lacks it`
      const answers = world.answers.filter(
        one => one.reader === mirror && world.rowsOf(one).some(other => other.id === id),
      )
      return text
        ? [{ rule: 'mirror', about: id, text: `${mirror}: ${text}`, answers: answers.slice(-3) }]
        : []
    })
  })
}

function rowDifference(row: Row, expected: object | undefined): string | undefined {
  if (!expected) return `${row.id} is shown, and is not public`
  const { updated_at: _, ...shown } = row
  const wrong = Object.entries(expected).filter(
    ([name, value]) => !isDeepStrictEqual(value, shown[name as keyof typeof shown]),
  )
  return wrong.length === 0 ? undefined : `${row.id} should have ${JSON.stringify(Object.fromEntries(wrong))}`
}
