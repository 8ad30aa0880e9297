/**
 * What an answer shows of a campaign: one state that it had, with each pledge counted once in one of its states. A total that lost or
 * doubled a pledge is the sum of no states. Nothing is shown before it was said, and nothing older than what an answer showed that
 * had ended before this one was read. A removal counts as shown: what was hidden does not come back with an earlier stamp. What was shown
 * is found, and is counted by the statistics, until something that hides it is said.
 */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { messageOf } from '../../../services/runtime/message-of.ts'
import { readModelOf } from '../../support/events/model.ts'
import { expectedProject, expectedTexts } from '../../support/faults/api-projects.ts'
import { digitOf, digitsOfSum, isPublic, pledgeKey } from '../../support/faults/campaign-histories.ts'
import type { Answer, Row, Violation } from './log.ts'
import { type Campaign, countBefore, differenceBetween, mayBeHidden, slugOf, type World } from './truth.ts'

/** How many states of the campaign, and of the pledge at each place, an answer has reached at least. */
type Progress = readonly number[]

interface Seen {
  progress: Progress
  /** The latest `updated_at`, of a row or of a removal. */
  stamp: number
  answer: Answer
}

// A detail may have waited for the answer to an earlier request.
const waitMsMax = 15_000

export function checkRows({ answers, campaigns, isDisturbed }: World): Violation[] {
  const seen = new Map<string, Seen[]>()
  const certain = countCertain()
  const found: Violation[] = []
  const lastSeen = (id: string, at: number) => seen.get(id)?.findLast(one => one.answer.receivedAt < at)

  function note(id: string, shown: Progress, stamp: number, answer: Answer): void {
    const others = seen.get(id) ?? []
    const last = others.at(-1)
    const longer = shown.length > 0 ? shown : (last?.progress ?? [])
    const progress = longer.map((count, index) => Math.max(count, last?.progress[index] ?? 0))
    others.push({ progress, stamp: Math.max(stamp, last?.stamp ?? 0), answer })
    seen.set(id, others)
  }

  for (const answer of answers) {
    const { sentAt, receivedAt, ageMs, path, status, stats } = answer
    const readSince = sentAt - ageMs
    const report = (about: string, text: string, before?: Seen) =>
      found.push({ rule: 'rows', about, text, answers: before ? [before.answer, answer] : [answer] })
    for (const row of answer.rows) {
      const campaign = campaigns.get(row.id)
      const before = lastSeen(row.id, readSince)
      const shown = campaign ? progressOf(row, campaign, before?.progress ?? [], receivedAt) : 'is not known'
      if (!campaign || typeof shown === 'string') {
        report(row.id, String(shown), before)
        continue
      }
      const stamp = Date.parse(row.updated_at)
      if (before && stamp < before.stamp)
        report(row.id, `is shown of ${row.updated_at} after ${new Date(before.stamp).toISOString()}`, before)
      note(row.id, shown, stamp, answer)
      certain.see(campaign, shown[0] ?? 0, receivedAt)
    }
    for (const { id, updated_at } of answer.removals ?? []) note(id, [], Date.parse(updated_at), answer)
    const slug = status === 404 ? slugOf(path) : undefined
    const before = slug && lastSeen(slug, readSince - waitMsMax)
    const missing = slug && campaigns.get(slug)
    if (before && missing && !mayBeHidden(missing, before.progress[0] ?? 0, receivedAt))
      report(slug, 'is not found, and was seen before', before)
    const least = certain.least(readSince, receivedAt)
    if (stats && stats.projects_total < least && !isDisturbed('generation', readSince, receivedAt))
      report('/stats', `counts ${stats.projects_total} campaigns, and ${least} are public`)
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
    if (!isPublic(states[state]?.data)) return `shows state ${state}, which is not public`
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
    return messageOf(error)
  }
}

// The states that a row was compared with: most answers show what others have shown.
const checked = new WeakMap<Row, string>()

function differenceOf(row: Row, { states, pledges }: Campaign, progress: Progress): string | undefined {
  if (checked.get(row) === progress.join()) return undefined
  const [state = 0, ...ofPledges] = progress
  const events: ChangeEvent[] = [{ type: 'campaign', key: row.id, data: states[state - 1]?.data ?? null }]
  for (const [place, count] of ofPledges.entries()) {
    const data = pledges[place]?.[count - 1]?.data
    if (data) events.push({ type: 'pledge', key: pledgeKey(row.id, place), data })
  }
  const reading = readModelOf(events).campaigns.get(row.id)
  if (!reading) return 'is not public'
  const difference = differenceBetween(row, {
    ...expectedProject(reading),
    ...('rewards' in row && expectedTexts(reading)),
  })
  if (!difference) checked.set(row, progress.join())
  return difference
}

/** How many campaigns are public for sure: they were seen, and nothing that hides them was said since. */
function countCertain() {
  // Each time that a campaign was seen so, and each time that one of these was hidden, in their order.
  const shownAt: number[] = []
  const hiddenAt: number[] = []
  const shownUntil = new Map<Campaign, number>()
  return {
    see(campaign: Campaign, shown: number, at: number): void {
      const hidings = campaign.states.slice(shown).filter(({ data }) => !isPublic(data))
      const until = Math.min(...hidings.map(one => one.at))
      if (until <= at || (shownUntil.get(campaign) ?? 0) > at) return
      shownUntil.set(campaign, until)
      shownAt.push(at)
      hiddenAt.splice(countBefore(hiddenAt, until), 0, until)
    },
    /** At least this many are in an answer that was read after the first moment and came at the second one. */
    least: (readSince: number, by: number) => countBefore(shownAt, readSince) - countBefore(hiddenAt, by),
  }
}
