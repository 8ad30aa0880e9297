/**
 * Judges what the API shows of a campaign, at any time during any fault: whether it is one state that the campaign had or was
 * about to have, whether that state was published by then, and whether a later state was already seen before.
 *
 * Times are Unix ms. An answer shows what ClickHouse had at `readSince` or later. So nothing in it may be older than what an
 * answer that had ended by then showed. That bound holds however long an answer was cached.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Project, ProjectDetail } from '../../../contracts/api/schemas.ts'
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { type CampaignReading, readModelOf } from '../events/model.ts'
import { expectedProject, expectedTexts, timeless } from './api-projects.ts'
import {
  type CampaignHistory,
  digitOf,
  digitsOfSum,
  isPublic,
  pledgeKey,
  stateOfTitle,
} from './campaign-histories.ts'
import { saidOf, type Traffic } from './traffic.ts'

export interface Moment {
  readSince: number
  finishedAt: number
}

export interface Judge {
  /** What is wrong with the campaign as it was shown, or `undefined`. */
  shown(project: Project | ProjectDetail, moment: Moment): string | undefined
  /** What is wrong with the campaign not being shown, or `undefined`. */
  missing(id: string, moment: Moment): string | undefined
  /** The campaigns that an answer read at this time or later has to contain. */
  certainlyPublic(readSince: number): string[]
}

/** The state that a campaign, and the pledge at each place, has reached at least; 0: no event was published. */
type Progress = readonly number[]

export function createJudge(traffic: Traffic): Judge {
  const seen = new Map<string, { at: number; progress: Progress }[]>()

  function progressAt(id: string, at: number): Progress {
    return seen.get(id)?.findLast(entry => entry.at <= at)?.progress ?? []
  }

  function note(id: string, at: number, progress: Progress): void {
    const entries = seen.get(id) ?? []
    const last = entries.at(-1)
    const least = progress.map((count, index) => Math.max(count, last?.progress[index] ?? 0))
    if (last && isDeepStrictEqual(last.progress, least)) return
    entries.push({ at, progress: least })
    seen.set(id, entries)
  }

  function fault(project: Project | ProjectDetail, { readSince, finishedAt }: Moment): string | undefined {
    const history = traffic.history(project.id)
    if (!history) return 'it is no campaign of ours'
    const said = saidOf(traffic, history)
    const floor = progressAt(project.id, readSince)
    const shown = shownProgress(history, project, floor, said)
    if (typeof shown === 'string') return shown
    const reading = readingAt(history, shown)
    if (!reading) return `state ${shown[0]} is not public`
    const expected = expectedProject(reading)
    const whole = 'rewards' in project ? { ...expected, ...expectedTexts(reading) } : expected
    const difference = differenceOf({ ...timeless(project) }, { ...whole })
    if (difference) return difference
    note(project.id, finishedAt, shown)
    return undefined
  }

  return {
    shown(project, moment) {
      try {
        const found = fault(project, moment)
        return found && `${project.id}: ${found}`
      } catch (error) {
        return `${project.id}: ${error instanceof Error ? error.message : error}`
      }
    },

    missing(id, { readSince }) {
      const history = traffic.history(id)
      if (!history || mayBeHidden(history, progressAt(id, readSince)[0] ?? 0, traffic.said(id)))
        return undefined
      return `${id}: it is not there, and has been seen`
    },

    certainlyPublic: readSince =>
      [...seen.keys()].filter(id => {
        const history = traffic.history(id)
        return history && !mayBeHidden(history, progressAt(id, readSince)[0] ?? 0, traffic.said(id))
      }),
  }
}

/** The least state that the row can be of, or what is wrong. */
function shownProgress(
  history: CampaignHistory,
  project: Project,
  floor: Progress,
  said: Progress,
): Progress | string {
  const { id, pledges } = history
  const state = stateOfTitle(id, project.title) + 1
  if (state > (said[0] ?? 0)) return `shows state ${state}, which was not said yet`
  if (state < (floor[0] ?? 0)) return `shows state ${state} after ${floor[0]}`
  const minorUnits = 10 ** (currencyDigits(project.currency) ?? 0)
  const digits = digitsOfSum(Math.round(project.pledged_amount * minorUnits))
  const progress = [state]
  for (const [place, states] of pledges.entries()) {
    const from = floor[place + 1] ?? 0
    const to = said[place + 1] ?? 0
    let count = from
    while (count <= to && digitOf(states[count - 1], place) !== digits[place]) count++
    if (count > to) {
      return `counts pledge ${place} as ${digits[place]}, which is none of its states ${from} to ${to}`
    }
    progress.push(count)
  }
  return progress
}

/** The plain model of the campaign and its pledges in these states; `undefined` if it was not public. */
function readingAt(
  { id, states, pledges }: CampaignHistory,
  progress: Progress,
): CampaignReading | undefined {
  const stateAt = <S>(history: readonly S[], count = 0): S | null => history[count - 1] ?? null
  const events: ChangeEvent[] = [{ type: 'campaign', key: id, data: stateAt(states, progress[0]) }]
  for (const [place, history] of pledges.entries()) {
    const data = stateAt(history, progress[place + 1])
    if (data) events.push({ type: 'pledge', key: pledgeKey(id, place), data })
  }
  return readModelOf(events).campaigns.get(id)
}

/** Whether one of the states from the `from`-th (0: before the first) to the last published one is not public. */
function mayBeHidden({ states }: CampaignHistory, from: number, said: number): boolean {
  return from === 0 || states.slice(from - 1, said).some(state => !isPublic(state))
}

function differenceOf(
  shown: Readonly<Record<string, unknown>>,
  expected: Readonly<Record<string, unknown>>,
): string | undefined {
  const names = new Set([...Object.keys(shown), ...Object.keys(expected)])
  const differing = [...names].filter(name => !isDeepStrictEqual(shown[name], expected[name]))
  const partOf = (row: Readonly<Record<string, unknown>>) =>
    JSON.stringify(Object.fromEntries(differing.map(name => [name, row[name]])))
  if (differing.length === 0) return undefined
  return `shows ${partOf(shown)}, but one state has ${partOf(expected)}`
}
