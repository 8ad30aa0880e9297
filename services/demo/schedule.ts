/**
 * The times of a campaign's events, including those after `now`.
 *
 * A campaign's status at any time depends on its schedule alone, so the history can end at any time, and the trickle
 * continues without a gap. All times are ms since the epoch.
 */
import type { CampaignStatus } from '../../contracts/events/event.ts'
import { between, pick, type Random } from './random.ts'

export type DemoStatus = Exclude<CampaignStatus, 'UNKNOWN'>
export type Outcome = 'FUNDED' | 'FAILED' | 'CANCELLED' | 'SUSPENDED'

export interface Schedule {
  createdAt: number
  submittedAt: number
  approvedAt: number
  launchAt: number
  /** Planned end. */
  endAt: number
  /** When it stops being live: the planned end, or earlier if it is cancelled or suspended. */
  closedAt: number
  outcome: Outcome
}

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

/** The number of campaigns in a hundred with each status at `now`. */
// biome-ignore format: two lines read better than eight.
export const statusShares: Readonly<Record<DemoStatus, number>> =
  { LIVE: 22, FUNDED: 40, FAILED: 19, CANCELLED: 5, SUSPENDED: 3, APPROVED: 4, SUBMITTED: 2, DRAFT: 5 }

/**
 * The status at `now` of the campaign with this number, and its position among those with the same status (0 to 1).
 * Multiples of the golden ratio are spread evenly. So any number of campaigns has the shares above, some live campaign ends
 * soon, and some approved campaign launches soon.
 */
export function standingOf(number: number, offset: number): { status: DemoStatus; position: number } {
  let left = 100 * ((offset + number * 0.618033988749895) % 1)
  for (const [status, share] of Object.entries(statusShares) as [DemoStatus, number][]) {
    if (left < share) return { status, position: left / share }
    left -= share
  }
  throw new RangeError('the shares do not add up to a hundred')
}

// Planned days from launch to end. Most creators keep the default of the form.
const durations = [14, 14, 21, 21, 21, 28, 28, 28, ...Array<number>(8).fill(30), 35, 35, 45, 45, 60]

/** A schedule with which a campaign has the given status at `now`. `position` comes from `standingOf`. */
export function scheduleOf(random: Random, status: DemoStatus, position: number, now: number): Schedule {
  const planned = pick(random, durations) * day
  const share = random()
  let outcome: Outcome = share < 0.64 ? 'FUNDED' : share < 0.96 ? 'FAILED' : 'CANCELLED'
  // The duration of the steps: writing, the platform's review, and waiting for the launch.
  const steps = [between(random, 2 * day, 70 * day), between(random, 2 * hour, 3 * day)]
  steps.push(between(random, hour, 12 * day))
  let lived = livedOf(random, outcome, planned)
  switch (status) {
    case 'DRAFT':
      return during(0, between(random, 20 * minute, 40 * day), 15 * minute + position ** 2 * 30 * day)
    case 'SUBMITTED':
      return during(1, between(random, 10 * minute, 30 * hour), 6 * minute + position ** 2 * 2 * day)
    case 'APPROVED':
      return during(2, between(random, hour, 8 * day), 1.5 * minute + position ** 3 * 10 * day)
    case 'LIVE': {
      const left = Math.max(4 * minute, planned * position ** 2)
      if (outcome === 'CANCELLED') lived = planned - left * between(random, 0.1, 0.9)
      return during(3, planned - left, left)
    }
    default:
      outcome = status
      lived = livedOf(random, outcome, planned)
      return during(3, lived + 20 * minute + 560 * day * position ** 1.6, 0)
  }

  /** The schedule whose step with this index (3: after the launch) began this long ago and lasts this long. */
  function during(step: number, since: number, left: number): Schedule {
    const createdAt = steps.slice(0, step).reduce((time, span) => time - span, now - since)
    if (step < steps.length) steps[step] = since + left
    const [writing = 0, review = 0, waiting = 0] = steps
    const launchAt = createdAt + writing + review + waiting
    return {
      createdAt: Math.floor(createdAt),
      submittedAt: Math.floor(createdAt + writing),
      approvedAt: Math.floor(createdAt + writing + review),
      launchAt: Math.floor(launchAt),
      endAt: Math.floor(launchAt + planned),
      closedAt: Math.floor(launchAt + lived),
      outcome,
    }
  }
}

/** The status of a campaign at a time after `createdAt`. */
export function statusAt(schedule: Schedule, time: number): DemoStatus {
  if (time < schedule.submittedAt) return 'DRAFT'
  if (time < schedule.approvedAt) return 'SUBMITTED'
  if (time < schedule.launchAt) return 'APPROVED'
  return time < schedule.closedAt ? 'LIVE' : schedule.outcome
}

function livedOf(random: Random, outcome: Outcome, planned: number): number {
  return outcome === 'FUNDED' || outcome === 'FAILED' ? planned : planned * between(random, 0.15, 0.85)
}
