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

/** Sums of money are in the smallest unit: of the campaign's currency, or of the platform's. */
export type ReadModel = ReturnType<typeof readModelOf>
export type CampaignReading = ReturnType<typeof readingOf>

/** Folds the events. They may come in any order, more than once and late. API keys are ignored. */
export function readModelOf(events: Iterable<ChangeEvent>) {
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
    /** The public campaigns by id. */
    campaigns: campaigns as ReadonlyMap<string, CampaignReading>,
    /** By category, of public campaigns only. */
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

function readingOf(campaign: CampaignState, counting: readonly PledgeState[]) {
  return {
    /** The latest state. */
    campaign,
    pledgedMinor: sumOf(counting.map(pledge => BigInt(pledge.amount_minor))),
    pledgedPlatformMinor: sumOf(counting.map(pledge => BigInt(pledge.platform_amount_minor))),
    pledgeCount: counting.length,
    /** Distinct backers with a pledge that counts. */
    backerCount: new Set(counting.map(pledge => pledge.backer_id)).size,
    /** In the campaign's order. */
    rewards: campaign.rewards.map(({ reward_id, quantity_available }) => {
      /** Pledges that count and chose the tier. */
      const claimed = counting.filter(pledge => pledge.reward_id === reward_id).length
      /** How many are left, never below 0; null: unlimited. */
      const remaining = quantity_available === null ? null : BigInt(quantity_available) - BigInt(claimed)
      return { claimed, remaining: remaining !== null && remaining < 0n ? 0n : remaining }
    }),
  }
}

/** The names are those of the view. */
function categoryOf(members: readonly CampaignReading[]) {
  return {
    project_count: members.length,
    live_count: members.filter(({ campaign }) => campaign.status === 'LIVE').length,
    funded_count: members.filter(({ campaign }) => campaign.status === 'FUNDED').length,
    pledge_count: members.reduce((sum, { pledgeCount }) => sum + pledgeCount, 0),
    pledged_platform_minor: sumOf(members.map(({ pledgedPlatformMinor }) => pledgedPlatformMinor)),
  }
}

/** The names are those of the view. */
function platformOf(readings: readonly CampaignReading[], total_backers: number) {
  const countOf = (status: string): number =>
    readings.filter(({ campaign }) => campaign.status === status).length
  return {
    total_raised_minor: sumOf(readings.map(({ pledgedPlatformMinor }) => pledgedPlatformMinor)),
    total_pledges: readings.reduce((sum, { pledgeCount }) => sum + pledgeCount, 0),
    total_backers,
    total_creators: new Set(readings.map(({ campaign }) => campaign.creator.creator_id)).size,
    projects_total: readings.length,
    projects_live: countOf('LIVE'),
    projects_funded: countOf('FUNDED'),
    projects_failed: countOf('FAILED'),
    projects_cancelled: countOf('CANCELLED'),
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
