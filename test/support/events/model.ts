/**
 * What the read model must say after given events, computed as plainly as possible, for tests to compare with.
 *
 * It is written from the contracts of events and tables, independently of the fold's SQL. Sums are exact.
 */
import {
  type CampaignState,
  type ChangeEvent,
  countsTowardsTotals,
  isPublicStatus,
  type PledgeState,
} from '../../../contracts/events/event.ts'

export interface RewardReading {
  rewardId: string
  /** Pledges that count and chose the tier. */
  claimed: number
  /** How many are left, never below 0; null: unlimited. */
  remaining: bigint | null
}

export interface CampaignReading {
  /** The latest state. */
  campaign: CampaignState
  /** In the smallest unit of the campaign's currency, and of the platform's. */
  pledgedMinor: bigint
  pledgedPlatformMinor: bigint
  pledgeCount: number
  /** Distinct backers with a pledge that counts. */
  backerCount: number
  /** In the campaign's order. */
  rewards: RewardReading[]
}

export interface CategoryReading {
  projectCount: number
  liveCount: number
  fundedCount: number
  pledgeCount: number
  pledgedPlatformMinor: bigint
}

export interface PlatformReading {
  totalRaisedMinor: bigint
  totalPledges: number
  totalBackers: number
  totalCreators: number
  projectsTotal: number
  projectsLive: number
  projectsFunded: number
  projectsFailed: number
  projectsCancelled: number
}

export interface ReadModel {
  /** The public campaigns by id. */
  campaigns: ReadonlyMap<string, CampaignReading>
  /** By category, of public campaigns only. */
  categories: ReadonlyMap<string, CategoryReading>
  platform: PlatformReading
}

/** Folds the events. They may come in any order, more than once and late. API keys are ignored. */
export function readModelOf(events: Iterable<ChangeEvent>): ReadModel {
  const { campaigns: latestCampaigns, pledges } = latestOf(events)
  const pledgesByCampaign = Map.groupBy(
    pledges.filter(pledge => countsTowardsTotals(pledge.status)),
    pledge => pledge.campaign_id,
  )
  const campaigns = new Map<string, CampaignReading>()
  const backers = new Set<string>()
  for (const campaign of latestCampaigns) {
    if (!isPublicStatus(campaign.status)) continue
    const counting = pledgesByCampaign.get(campaign.campaign_id) ?? []
    campaigns.set(campaign.campaign_id, readingOf(campaign, counting))
    for (const { backer_id } of counting) backers.add(backer_id)
  }
  const readings = [...campaigns.values()]
  return {
    campaigns,
    categories: new Map(
      [...Map.groupBy(readings, ({ campaign }) => campaign.category)].map(([category, members]) => [
        category,
        categoryOf(members),
      ]),
    ),
    platform: platformOf(readings, backers.size),
  }
}

/** The latest state of every entity that was not deleted: the highest version, in any order of arrival. */
function latestOf(events: Iterable<ChangeEvent>): { campaigns: CampaignState[]; pledges: PledgeState[] } {
  const campaigns = new Map<string, CampaignState | 'deleted'>()
  const pledges = new Map<string, PledgeState | 'deleted'>()
  for (const event of events) {
    switch (event.type) {
      case 'campaign':
        keepLatest(campaigns, event.key, event.data)
        break
      case 'pledge':
        keepLatest(pledges, event.key, event.data)
        break
      case 'api-key':
        break
      default:
        event satisfies never
    }
  }
  return {
    campaigns: [...campaigns.values()].filter(state => state !== 'deleted'),
    pledges: [...pledges.values()].filter(state => state !== 'deleted'),
  }
}

function keepLatest<S extends { version: number | bigint }>(
  latest: Map<string, S | 'deleted'>,
  key: string,
  state: S | null,
): void {
  const known = latest.get(key)
  if (known === 'deleted') return
  if (state === null) latest.set(key, 'deleted')
  else if (known === undefined || state.version > known.version) latest.set(key, state)
}

function readingOf(campaign: CampaignState, counting: readonly PledgeState[]): CampaignReading {
  return {
    campaign,
    pledgedMinor: sumOf(counting.map(pledge => BigInt(pledge.amount_minor))),
    pledgedPlatformMinor: sumOf(counting.map(pledge => BigInt(pledge.platform_amount_minor))),
    pledgeCount: counting.length,
    backerCount: new Set(counting.map(pledge => pledge.backer_id)).size,
    rewards: campaign.rewards.map(({ reward_id, quantity_available }) => {
      const claimed = counting.filter(pledge => pledge.reward_id === reward_id).length
      const remaining = quantity_available === null ? null : BigInt(quantity_available) - BigInt(claimed)
      return {
        rewardId: reward_id,
        claimed,
        remaining: remaining !== null && remaining < 0n ? 0n : remaining,
      }
    }),
  }
}

function categoryOf(members: readonly CampaignReading[]): CategoryReading {
  return {
    projectCount: members.length,
    liveCount: members.filter(({ campaign }) => campaign.status === 'LIVE').length,
    fundedCount: members.filter(({ campaign }) => campaign.status === 'FUNDED').length,
    pledgeCount: members.reduce((sum, { pledgeCount }) => sum + pledgeCount, 0),
    pledgedPlatformMinor: sumOf(members.map(({ pledgedPlatformMinor }) => pledgedPlatformMinor)),
  }
}

function platformOf(readings: readonly CampaignReading[], totalBackers: number): PlatformReading {
  const countOf = (status: string): number =>
    readings.filter(({ campaign }) => campaign.status === status).length
  return {
    totalRaisedMinor: sumOf(readings.map(({ pledgedPlatformMinor }) => pledgedPlatformMinor)),
    totalPledges: readings.reduce((sum, { pledgeCount }) => sum + pledgeCount, 0),
    totalBackers,
    totalCreators: new Set(readings.map(({ campaign }) => campaign.creator.creator_id)).size,
    projectsTotal: readings.length,
    projectsLive: countOf('LIVE'),
    projectsFunded: countOf('FUNDED'),
    projectsFailed: countOf('FAILED'),
    projectsCancelled: countOf('CANCELLED'),
  }
}

function sumOf(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

/** 100 * pledged / goal, rounded half up to two decimals; 0 when the goal is 0. */
export function percentText(pledged: bigint, goal: bigint): string {
  return goal === 0n ? '0' : majorText((pledged * 20_000n + goal) / (2n * goal), 2)
}

/** A non-negative amount in major units, without trailing zeros. */
export function majorText(minor: bigint, digits: number): string {
  const text = String(minor).padStart(digits + 1, '0')
  const whole = text.slice(0, text.length - digits)
  const fraction = text.slice(text.length - digits).replace(/0+$/, '')
  return fraction === '' || digits === 0 ? whole : `${whole}.${fraction}`
}

/** The order of texts in ClickHouse. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
