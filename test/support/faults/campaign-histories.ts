/**
 * Campaigns whose public rows show which states they were computed from.
 *
 * The title names the state of the campaign. An amount tells which states of which pledges it is the sum of: the pledge at
 * place k adds its own digit to a number of base 4. So a test can tell from a row whether it is one state of the campaign, or
 * a mixture of several.
 */
import {
  type CampaignState,
  type CampaignStatus,
  type ChangeEvent,
  countsTowardsTotals,
  isPublicStatus,
  type PledgeState,
  type PledgeStatus,
} from '../../../contracts/events/event.ts'
import { sampleCampaign, sampleReward } from '../events/sample-events.ts'
import { chance, intBetween, pick, type Random } from '../runner/random.ts'

/** All states of a campaign and its pledges, in the order of their versions. A `null` at the end is a tombstone. */
export type CampaignHistory = ReturnType<typeof createHistory>

export const categories = ['Comics', 'Film & Video', 'Games']

const places = 12
const base = 4
const currencies = ['USD', 'EUR', 'JPY', 'KWD']
const rewardIds = ['r1', 'r2', 'r3']
const backers = 300

// Most are public all the time. Some come late, go, come back, or never appear.
const lives: readonly (readonly (CampaignStatus | null)[])[] = [
  ['DRAFT', 'LIVE', 'LIVE', 'FUNDED'],
  ['LIVE', 'LIVE', 'FAILED'],
  ['LIVE', 'LIVE', 'LIVE', 'CANCELLED'],
  ['SUBMITTED', 'APPROVED', 'LIVE', 'LIVE'],
  ['LIVE', 'SUSPENDED', 'LIVE', 'FUNDED'],
  ['LIVE', 'LIVE', 'SUSPENDED'],
  ['LIVE', 'LIVE', null],
  ['DRAFT', 'SUBMITTED', 'APPROVED'],
]

// The digit belongs to the amount. A state that does not count adds nothing to the sum.
const pledgeLives: readonly (readonly (readonly [PledgeStatus, number] | null)[])[] = [
  [['ACTIVE', 1]],
  [
    ['ACTIVE', 1],
    ['COLLECTED', 2],
  ],
  [
    ['PENDING', 3],
    ['ACTIVE', 2],
    ['COLLECTED', 3],
  ],
  [
    ['ACTIVE', 3],
    ['CANCELLED', 3],
  ],
  [
    ['ACTIVE', 2],
    ['COLLECTED', 1],
    ['REFUNDED', 1],
  ],
  [['ACTIVE', 1], null],
]

export function createHistory(random: Random, index: number) {
  const id = `c${index}`
  const constant = {
    category: pick(random, categories),
    currency: pick(random, currencies),
    // Constant, so that the order of `newest` can be checked on any page.
    launch_date: chance(random, 0.1) ? null : Date.UTC(2026, 0, 1) + intBetween(random, 0, 50) * 3_600_000,
    creator: { ...sampleCampaign({ campaign_id: id }).creator, creator_id: `creator-${index % 40}` },
  }
  const versions = growing(random)
  const states = pick(random, lives).map((status, n) =>
    status === null
      ? null
      : sampleCampaign({
          ...constant,
          campaign_id: id,
          version: versions(),
          status,
          title: titleOf(id, n),
          subtitle: n % 2 === 0 ? null : `subtitle ${n}`,
          follower_count: 10 * n,
          goal_amount_minor: chance(random, 0.1) ? 0 : intBetween(random, 1, 5_000_000),
          is_staff_pick: chance(random, 0.5),
          description: `description ${n}`,
          rewards: rewardIds
            .slice(0, intBetween(random, 0, 3))
            .map(reward_id => sampleReward({ reward_id, quantity_available: pick(random, [null, 2, 5]) })),
        }),
  )
  /** The states of the pledge at each place. */
  const pledges = Array.from({ length: places }, (_, place) => createPledge(random, id, place))
  return { id, states, pledges }
}

/** The events of the campaign. Entities are interleaved; each is mostly in order. */
export function eventsOf({ id, states, pledges }: CampaignHistory, random: Random): ChangeEvent[] {
  const queues: ChangeEvent[][] = [
    states.map(data => ({ type: 'campaign', key: id, data })),
    ...pledges.map((history, place) =>
      history.map((data): ChangeEvent => ({ type: 'pledge', key: pledgeKey(id, place), data })),
    ),
  ]
  const events: ChangeEvent[] = []
  for (let left = queues; left.length > 0; left = left.filter(queue => queue.length > 0)) {
    const next = pick(random, left).shift()
    if (next) events.push(next)
  }
  for (let i = 0; i + 3 < events.length; i++) {
    const [a, b] = [events[i], events[i + 3]]
    if (a && b && chance(random, 0.05)) [events[i], events[i + 3]] = [b, a]
  }
  return events
}

/** The digits, by place, of a sum in the smallest unit. Throws if it is not a sum of pledges. */
export function digitsOfSum(sum: number): number[] {
  const digits = Array.from({ length: places }, (_, place) => Math.floor(sum / base ** place) % base)
  const isSum = Number.isInteger(sum) && sum >= 0 && sum < base ** places
  if (!isSum) throw new Error(`${sum} is no sum of pledges`)
  return digits
}

/** The digit that a state of the pledge at this place adds: 0 if it does not count. */
export function digitOf(state: PledgeState | null | undefined, place: number): number {
  return state && countsTowardsTotals(state.status) ? Number(state.amount_minor) / base ** place : 0
}

/** Whether a campaign is public in this state; `null` and `undefined` are not states. */
export function isPublic(state: CampaignState | null | undefined): boolean {
  return state !== null && state !== undefined && isPublicStatus(state.status)
}

export function pledgeKey(campaignId: string, place: number): string {
  return `${campaignId}/p${place}`
}

function createPledge(random: Random, campaign_id: string, place: number): (PledgeState | null)[] {
  const constant = {
    pledge_id: `p${place}`,
    campaign_id,
    backer_id: `backer-${intBetween(random, 1, backers)}`,
    changed_at: Date.UTC(2026, 1, 2),
    reward_id: pick(random, [...rewardIds, null]),
  }
  const versions = growing(random)
  return pick(random, pledgeLives).map(state => {
    if (state === null) return null
    const [status, digit] = state
    const amount_minor = digit * base ** place
    return { ...constant, version: versions(), status, amount_minor, platform_amount_minor: 2 * amount_minor }
  })
}

/** Versions as platforms have them: a counter, or microseconds. */
function growing(random: Random): () => number {
  let version = chance(random, 0.5) ? 0 : 1_790_000_000_000_000
  return () => {
    version += intBetween(random, 1, 3)
    return version
  }
}

function titleOf(id: string, n: number): string {
  return `Campaign ${id}, state ${n}`
}
