/**
 * What an answer shows of a campaign: one state that it had, with each pledge counted once in one of its states. A total that lost or
 * doubled a pledge is the sum of no states. Nothing is shown before it was said, and nothing older than what an answer showed that
 * had ended before this one was read. A removal counts as shown: what was hidden does not come back with an earlier stamp.
 */
import { isDeepStrictEqual } from 'node:util'
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { type CampaignReading, readModelOf } from '../../support/events/model.ts'
import { expectedProject, expectedTexts } from '../../support/faults/api-projects.ts'
import { digitOf, digitsOfSum, isPublic, pledgeKey } from '../../support/faults/campaign-histories.ts'
import type { Answer, Row, Violation } from './log.ts'
import { type Campaign, mayBeHidden, type World } from './truth.ts'

/** How many states of the campaign, and of the pledge at each place, an answer has reached at least. */
type Progress = readonly number[]

interface Seen {
  at: number
  progress: Progress
  /** The latest `updated_at`, of a row or of a removal. */
  stamp: number
  answer: Answer
}

// A detail may have waited for the answer to an earlier request.
const waitMsMax = 15_000

export function checkRows(world: World): Violation[] {
  const { answers, campaigns, rowsOf } = world
  const seen = new Map<string, Seen[]>()
  const certain = countCertain(world)
  const found: Violation[] = []
  const lastSeen = (id: string, at: number) => seen.get(id)?.findLast(one => one.at < at)

  function note(id: string, shown: Progress, stamp: number, answer: Answer): void {
    const others = seen.get(id) ?? []
    const last = others.at(-1)
    const longer = shown.length > 0 ? shown : (last?.progress ?? [])
    const progress = longer.map((count, index) => Math.max(count, last?.progress[index] ?? 0))
    others.push({ at: answer.receivedAt, progress, stamp: Math.max(stamp, last?.stamp ?? 0), answer })
    seen.set(id, others)
  }

  for (const answer of answers) {
    const { sentAt, receivedAt, ageMs, path, status, stats } = answer
    const readSince = sentAt - ageMs
    const report = (about: string, text: string, before?: Seen) =>
      found.push({ rule: 'rows', about, text, answers: before ? [before.answer, answer] : [answer] })
    for (const row of rowsOf(answer)) {
      const campaign = campaigns.get(row.id)
      const before = lastSeen(row.id, readSince)
      const shown = campaign ? progressOf(row, campaign, before?.progress ?? [], receivedAt) : 'is not known'
      if (typeof shown === 'string') {
        report(row.id, shown, before)
        continue
      }
      const stamp = Date.parse(row.updated_at)
      if (before && stamp < before.stamp)
        report(row.id, `is shown of ${row.updated_at} after ${new Date(before.stamp).toISOString()}`, before)
      note(row.id, shown, stamp, answer)
      certain.see(row.id, shown[0] ?? 0, receivedAt)
    }
    for (const { id, updated_at } of answer.removals ?? []) note(id, [], Date.parse(updated_at), answer)
    const slug = /^\/projects\/slug-([^/?]+)$/.exec(path)?.[1]
    if (status === 404 && slug) {
      const before = lastSeen(slug, readSince - waitMsMax)
      const campaign = campaigns.get(slug)
      if (before && campaign && !mayBeHidden(campaign, before.progress[0] ?? 0, receivedAt))
        report(slug, 'is not found, and was seen before', before)
    }
    if (stats && !world.isDisturbed('generation', readSince, receivedAt)) {
      const least = certain.least(readSince, receivedAt)
      if (stats.projects_total < least)
        report('/stats', `counts ${stats.projects_total} campaigns, and ${least} are public`)
    }
  }
  return found
}

/** The least states that the row can be of, or what is wrong with it. */
function progressOf(row: Row, campaign: Campaign, before: Progress, by: number): Progress | string {
  try {
    const { states, pledges } = campaign
    const state = states.findIndex(({ data }) => data?.title === row.title)
    if (state < 0) return `shows ${JSON.stringify(row.title)}, which is no state of it`
    if ((states[state]?.at ?? 0) > by) return `shows state ${state} before it was said`
    if (state + 1 < (before[0] ?? 0)) return `shows state ${state} after state ${(before[0] ?? 0) - 1}`
    if (!isPublic(states[state]?.data ?? null)) return `shows state ${state}, which is not public`
    const digits = digitsOfSum(Math.round(row.pledged_amount * 10 ** (currencyDigits(row.currency) ?? 0)))
    const progress = [state + 1]
    for (const [place, digit] of digits.entries()) {
      const said = pledges[place] ?? []
      const from = before[place + 1] ?? 0
      const isAt = (count: number) =>
        digitOf(said[count - 1]?.data, place) === digit && (said[count - 1]?.at ?? 0) <= by
      let count = from
      while (count <= said.length && !isAt(count)) count++
      if (count > said.length)
        return `counts pledge ${place} as ${digit}, which is no state of it from ${from} on`
      progress.push(count)
    }
    return differenceOf(row, campaign, progress) ?? progress
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

// The states that a row was compared with: most answers show what others have shown.
const checked = new WeakMap<Row, string>()

function differenceOf(row: Row, campaign: Campaign, progress: Progress): string | undefined {
  if (checked.get(row) === progress.join()) return undefined
  const reading = readingAt(row.id, campaign, progress)
  if (!reading) return 'is not public'
  const { updated_at: _, ...shown } = row
  const expected = { ...expectedProject(reading), ...('rewards' in row && expectedTexts(reading)) }
  const names = [...new Set([...Object.keys(shown), ...Object.keys(expected)])] as (keyof typeof shown)[]
  const differing = names.filter(
    name => !isDeepStrictEqual(shown[name], expected[name as keyof typeof expected]),
  )
  if (differing.length === 0) {
    checked.set(row, progress.join())
    return undefined
  }
  const partOf = (all: object) =>
    JSON.stringify(
      Object.fromEntries(Object.entries(all).filter(([name]) => (differing as string[]).includes(name))),
    )
  return `shows ${partOf(shown)}, and one state has ${partOf(expected)}`
}

function readingAt(
  id: string,
  { states, pledges }: Campaign,
  progress: Progress,
): CampaignReading | undefined {
  const events: ChangeEvent[] = [
    { type: 'campaign', key: id, data: states[(progress[0] ?? 0) - 1]?.data ?? null },
  ]
  for (const [place, said] of pledges.entries()) {
    const data = said[(progress[place + 1] ?? 0) - 1]?.data
    if (data) events.push({ type: 'pledge', key: pledgeKey(id, place), data })
  }
  return readModelOf(events).campaigns.get(id)
}

/** How many campaigns are public for sure: they were seen, and nothing that hides them was said since. In one pass over the time. */
function countCertain({ campaigns }: World) {
  const hidings = [...campaigns].flatMap(([id, { states }]) =>
    states.flatMap(({ data, at }, state) => (isPublic(data) ? [] : [{ id, state, at }])),
  )
  hidings.sort((a, b) => a.at - b.at)
  const certain = new Map<string, number>()
  const counts: { at: number; count: number; hidden: number }[] = []
  let next = 0
  let hidden = 0
  const note = (at: number) => counts.push({ at, count: certain.size, hidden })
  function hideUntil(at: number): void {
    for (let one = hidings[next]; one && one.at <= at; one = hidings[++next]) {
      if ((certain.get(one.id) ?? Number.POSITIVE_INFINITY) > one.state) continue
      certain.delete(one.id)
      hidden++
      note(one.at)
    }
  }
  return {
    see(id: string, shown: number, at: number): void {
      hideUntil(at)
      const campaign = campaigns.get(id)
      if (!campaign || mayBeHidden(campaign, shown, at) || certain.has(id)) return
      certain.set(id, shown)
      note(at)
    },
    /** At least this many are in an answer that was read after the first moment and came at the second one. */
    least(readSince: number, by: number): number {
      hideUntil(by)
      const then = counts.findLast(({ at }) => at < readSince)
      return then ? then.count - (hidden - then.hidden) : 0
    },
  }
}
