/**
 * When the things of a campaign's life happen, the ones after `now` included.
 *
 * A campaign's status at any time follows from its schedule alone, so the history ends and the trickle begins
 * anywhere without a seam. All times are ms since the epoch.
 */
import type { CampaignStatus } from '../../contracts/events/event.ts'
import { atShare, between, pickWeighted, type Random, type Weighted } from './random.ts'

export type DemoStatus = Exclude<CampaignStatus, 'UNKNOWN'>
export type Outcome = 'FUNDED' | 'FAILED' | 'CANCELLED' | 'SUSPENDED'

export interface Schedule {
  createdAt: number
  submittedAt: number
  approvedAt: number
  launchAt: number
  /** Planned end. */
  endAt: number
  /** When it stops being live: the planned end, or earlier where it is cancelled or suspended. */
  closedAt: number
  outcome: Outcome
}

const minute = 60_000
const hour = 60 * minute
export const day = 24 * hour

/** How many campaigns of a hundred have which status at `now`. */
export const statusShares: readonly Weighted<DemoStatus>[] = [
  ['LIVE', 22],
  ['FUNDED', 40],
  ['FAILED', 19],
  ['CANCELLED', 5],
  ['SUSPENDED', 3],
  ['APPROVED', 4],
  ['SUBMITTED', 2],
  ['DRAFT', 5],
]

/**
 * The status at `now` of the campaign with this number, and how far along it is among those of its status (0 to 1).
 * Multiples of the golden ratio lie evenly, so that any number of campaigns has the shares above, and so that some
 * live campaign ends soon and some approved one launches soon.
 */
export function standingOf(number: number, offset: number): { status: DemoStatus; position: number } {
  const share = (offset + number * 0.618033988749895) % 1
  const total = statusShares.reduce((sum, [, weight]) => sum + weight, 0)
  const status = atShare(share, statusShares)
  let before = 0
  for (const [candidate, weight] of statusShares) {
    if (candidate === status) return { status, position: (share * total - before) / weight }
    before += weight
  }
  throw new RangeError(`${status} has no share`)
}

/** A schedule by which a campaign has the given status at `now`. `position` as `standingOf` gives it. */
export function scheduleOf(random: Random, status: DemoStatus, position: number, now: number): Schedule {
  const spans = drawSpans(random)
  switch (status) {
    case 'DRAFT': {
      const createdAt = now - between(random, 20 * minute, 40 * day)
      const submittedAt = now + 15 * minute + position ** 2 * 30 * day
      return scheduleFrom(createdAt, { ...spans, writing: submittedAt - createdAt })
    }
    case 'SUBMITTED': {
      const submittedAt = now - between(random, 10 * minute, 30 * hour)
      const approvedAt = now + 6 * minute + position ** 2 * 2 * day
      return scheduleFrom(submittedAt - spans.writing, { ...spans, review: approvedAt - submittedAt })
    }
    case 'APPROVED': {
      const approvedAt = now - between(random, hour, 8 * day)
      const launchAt = now + 90_000 + position ** 3 * 10 * day
      return scheduleFrom(approvedAt - spans.review - spans.writing, {
        ...spans,
        waiting: launchAt - approvedAt,
      })
    }
    case 'LIVE': {
      const left = Math.max(4 * minute, spans.planned * position ** 2)
      const lived =
        spans.outcome === 'CANCELLED' ? spans.planned - left * between(random, 0.1, 0.9) : spans.lived
      return scheduleFrom(now + left - spans.planned - preparation(spans), { ...spans, lived })
    }
    case 'FUNDED':
    case 'FAILED':
    case 'CANCELLED':
    case 'SUSPENDED': {
      const closedAt = now - 20 * minute - 560 * day * position ** 1.6
      const lived = livedOf(random, status, spans.planned)
      return scheduleFrom(closedAt - lived - preparation(spans), { ...spans, lived, outcome: status })
    }
    default:
      return status satisfies never
  }
}

/** The status that a campaign has at a time (from `createdAt` on). */
export function statusAt(schedule: Schedule, time: number): DemoStatus {
  if (time < schedule.submittedAt) return 'DRAFT'
  if (time < schedule.approvedAt) return 'SUBMITTED'
  if (time < schedule.launchAt) return 'APPROVED'
  return time < schedule.closedAt ? 'LIVE' : schedule.outcome
}

/** How long each part of a campaign's life takes, in ms, and how it turns out. */
interface Spans {
  writing: number
  review: number
  waiting: number
  /** From launch to the planned end, and to the actual one. */
  planned: number
  lived: number
  outcome: Outcome
}

const durations: readonly Weighted<number>[] = [
  [14, 2],
  [21, 3],
  [28, 3],
  [30, 8],
  [35, 2],
  [45, 2],
  [60, 1],
]

function drawSpans(random: Random): Spans {
  const planned = pickWeighted(random, durations) * day
  const outcome = pickWeighted<Outcome>(random, [
    ['FUNDED', 64],
    ['FAILED', 32],
    ['CANCELLED', 4],
  ])
  return {
    writing: between(random, 2 * day, 70 * day),
    review: between(random, 2 * hour, 3 * day),
    waiting: between(random, hour, 12 * day),
    planned,
    lived: livedOf(random, outcome, planned),
    outcome,
  }
}

function livedOf(random: Random, outcome: Outcome, planned: number): number {
  return outcome === 'FUNDED' || outcome === 'FAILED' ? planned : planned * between(random, 0.15, 0.85)
}

function preparation({ writing, review, waiting }: Spans): number {
  return writing + review + waiting
}

function scheduleFrom(createdAt: number, spans: Spans): Schedule {
  const submittedAt = createdAt + spans.writing
  const approvedAt = submittedAt + spans.review
  const launchAt = approvedAt + spans.waiting
  return {
    createdAt: Math.floor(createdAt),
    submittedAt: Math.floor(submittedAt),
    approvedAt: Math.floor(approvedAt),
    launchAt: Math.floor(launchAt),
    endAt: Math.floor(launchAt + spans.planned),
    closedAt: Math.floor(launchAt + spans.lived),
    outcome: spans.outcome,
  }
}
