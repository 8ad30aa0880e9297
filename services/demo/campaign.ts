/** One campaign in full: everything that it is, was and will be, and its state at any time. */
import type { CampaignState } from '../../contracts/events/event.ts'
import type { Category } from './catalog/types.ts'
import { farewells, paragraphsFor, updates } from './catalog/words.ts'
import { creatorOf, type DemoCreator, siteUrl } from './creators.ts'
import { opaqueId } from './ids.ts'
import { type DemoCurrency, goalAbove, goalAtMost, priceMinor } from './money.ts'
import { backersMaxOf, type DemoOptions, type Outline, themeOf } from './outline.ts'
import { type PlannedPledge, planPledges, totalsOf } from './pledges.ts'
import { between, chance, intBetween, logNormal, pick, type Random, randomOf } from './random.ts'
import { type DemoReward, type OfferedReward, planRewards, secondBatch } from './rewards.ts'
import { day, type Outcome, type Schedule, statusAt } from './schedule.ts'
import { type CampaignTexts, composeTexts } from './texts.ts'

/** Something that is added or changed at a time (ms). */
interface Change<T> {
  at: number
  value: T
}

export interface CampaignPlan {
  campaignId: string
  schedule: Schedule
  currency: DemoCurrency
  offers: OfferedReward[]
  pledges: PlannedPledge[]
  /** What never changes, or only with the status. */
  fixed: Pick<
    CampaignState,
    'campaign_type' | 'project_type' | 'category' | 'subcategory' | 'creator' | 'location' | 'uses_ai'
  > & { goalMinor: number; hasAdultContent: boolean; imageUrl: string | null }
  title: string
  slug: string
  texts: CampaignTexts
  /** A draft is written out at this time. */
  writtenAt: number
  hasWorkingTitle: boolean
  staffPickAt: number
  paragraphs: Change<string>[]
  extraReward: Change<DemoReward> | undefined
  /** It becomes a second edition, under another slug. */
  secondEditionAt: number
  followers: { atLaunch: number; atClose: number; extraEveryMs: number; extraFrom: number }
}

const never = Number.POSITIVE_INFINITY

/** Plans the campaign of an outline, all of its pledges included. */
export function planCampaign(options: DemoOptions, outline: Outline): CampaignPlan {
  const { seed } = options
  const { number, schedule } = outline
  const random = randomOf(seed, 'campaign', number)
  const creator = creatorOf(seed, outline.creatorNumber)
  const { genre, slots } = themeOf(seed, number, creator, outline.titleDraw)
  const { category, currency } = creator
  const staffPickAt = chance(random, 0.1) ? schedule.launchAt + between(random, day / 24, 4 * day) : never
  const count = pledgeCountOf(random, schedule.outcome, staffPickAt < schedule.closedAt)
  const offers = planRewards(random, { category, genre, slots, currency, pledgesExpected: count })
  const pledges = planPledges(randomOf(seed, 'pledges', number), count, {
    schedule,
    rewards: offers,
    currency,
    backersMax: backersMaxOf(options),
  })
  const campaignId = opaqueId('cmp', seed, number)
  const extra = secondBatch(offers, category.delivery)
  return {
    campaignId,
    schedule,
    currency,
    offers,
    pledges,
    fixed: {
      ...traitsOf(random, creator, schedule.outcome),
      subcategory: chance(random, 0.03) ? null : genre.name,
      goalMinor: goalOf(random, schedule.outcome, pledges, currency),
      imageUrl: chance(random, 0.02) ? null : `${siteUrl}/media/campaigns/${campaignId}.webp`,
    },
    title: outline.title,
    slug: outline.slug,
    texts: composeTexts(random, { category, genre, slots, endAt: schedule.endAt }),
    writtenAt: momentBetween(random, schedule.createdAt, schedule.submittedAt),
    hasWorkingTitle: chance(random, 0.15),
    staffPickAt: Math.floor(staffPickAt),
    paragraphs: planParagraphs(random, schedule, category),
    extraReward:
      extra && count > 60 && chance(random, 0.35)
        ? { at: momentBetween(random, schedule.launchAt, schedule.closedAt), value: extra }
        : undefined,
    secondEditionAt: chance(random, 0.02)
      ? momentBetween(random, schedule.launchAt, schedule.closedAt)
      : never,
    followers: {
      atLaunch: Math.floor(count * between(random, 0.1, 0.5)) + intBetween(random, 0, 12),
      atClose: Math.floor(count * between(random, 0.6, 2.4)) + intBetween(random, 12, 30),
      extraEveryMs: (30 * day) / (200 + 20 * count),
      extraFrom: Math.max(options.now, schedule.launchAt),
    },
  }
}

/** The campaign's state at a time (ms, from its creation on). */
export function campaignAt(plan: CampaignPlan, time: number, version = time * 1000): CampaignState {
  const { schedule, fixed, texts } = plan
  const { goalMinor, hasAdultContent, imageUrl, ...constant } = fixed
  const status = statusAt(schedule, time)
  const isWritten = time >= plan.writtenAt
  const wasLaunched = time >= schedule.launchAt
  const isWorkingTitle = plan.hasWorkingTitle && !isWritten
  const isSecondEdition = time >= plan.secondEditionAt
  const slug = isWorkingTitle
    ? `${plan.slug}-draft`
    : isSecondEdition
      ? `${plan.slug}-second-edition`
      : plan.slug
  const rewards = plan.offers.map(({ reward }) => reward)
  const added = plan.paragraphs.filter(({ at }) => time >= at).map(({ value }) => value)
  const extra = plan.extraReward && time >= plan.extraReward.at ? [plan.extraReward.value] : []
  return {
    ...constant,
    campaign_id: plan.campaignId,
    version,
    changed_at: time,
    status,
    slug,
    url: `${siteUrl}/projects/${slug}`,
    title: isWorkingTitle
      ? `Draft: ${plan.title}`
      : isSecondEdition
        ? `${plan.title}, Second Edition`
        : plan.title,
    subtitle: isWritten ? texts.subtitle : null,
    image_url: isWritten ? imageUrl : null,
    currency: plan.currency,
    goal_amount_minor: goalMinor,
    is_staff_pick: time >= plan.staffPickAt && wasLaunched,
    has_adult_content: hasAdultContent,
    tags: texts.tags,
    follower_count: followersAt(plan, time),
    launch_date: wasLaunched ? schedule.launchAt : null,
    end_date: wasLaunched ? endDateAt(schedule, time) : null,
    created_at: schedule.createdAt,
    description: [isWritten ? texts.description : texts.opening, ...added].join('\n\n'),
    risks: isWritten ? texts.risks : '',
    rewards: isWritten ? [...rewards, ...extra] : rewards.slice(0, 2),
  }
}

/** When the campaign's own events happen, in ms, growing. */
export function campaignMoments(plan: CampaignPlan): number[] {
  const { createdAt, submittedAt, approvedAt, launchAt, closedAt } = plan.schedule
  const followerUpdates = Array.from({ length: 7 }, (_, i) =>
    Math.floor(launchAt + ((closedAt - launchAt) * (i + 0.5)) / 7),
  )
  const changes = [
    plan.writtenAt,
    plan.staffPickAt,
    plan.secondEditionAt,
    plan.extraReward?.at ?? never,
    ...plan.paragraphs.map(({ at }) => at),
  ]
  const moments = [createdAt, submittedAt, approvedAt, launchAt, ...followerUpdates, ...changes, closedAt]
  return [...new Set(moments)].filter(moment => moment < never).sort((a, b) => a - b)
}

function pledgeCountOf(random: Random, outcome: Outcome, isStaffPick: boolean): number {
  const boost = isStaffPick ? 2 : 1
  switch (outcome) {
    case 'FUNDED':
      return Math.min(5_000, 15 + Math.floor(boost * logNormal(random, 90, 1.35)))
    case 'FAILED':
      return Math.min(400, Math.floor(boost * logNormal(random, 9, 1.1)))
    case 'CANCELLED':
    case 'SUSPENDED':
      return Math.min(400, Math.floor(boost * logNormal(random, 14, 1.2)))
    default:
      return outcome satisfies never
  }
}

/** Goals follow from the pledges, so that who is funded has reached it, whatever is withdrawn or refunded later. */
function goalOf(
  random: Random,
  outcome: Outcome,
  pledges: readonly PlannedPledge[],
  currency: DemoCurrency,
): number {
  const { lasting, promised } = totalsOf(pledges)
  const usual = priceMinor(logNormal(random, 4_000, 0.9), currency)
  switch (outcome) {
    case 'FUNDED':
      return goalAtMost(lasting / Math.max(1.01, logNormal(random, 1.2, 0.35)))
    case 'FAILED':
      return goalAbove(Math.max(promised / between(random, 0.02, 0.8), promised * 1.1, usual / 4))
    case 'CANCELLED':
    case 'SUSPENDED':
      return goalAbove(Math.max(promised / between(random, 0.05, 0.9), usual / 4))
    default:
      return outcome satisfies never
  }
}

function traitsOf(random: Random, { creator, category, location }: DemoCreator, outcome: Outcome) {
  const mayBeAdult = category.name === 'Comics' || category.name === 'Art'
  return {
    creator,
    category: category.name,
    project_type: category.projectType,
    // Who keeps what comes in cannot fail.
    campaign_type: outcome !== 'FAILED' && chance(random, 0.1) ? 'KEEP_IT_ALL' : 'ALL_OR_NOTHING',
    location: chance(random, 0.04) ? null : location,
    uses_ai: chance(random, 0.05),
    hasAdultContent: mayBeAdult && chance(random, 0.06),
  }
}

function planParagraphs(random: Random, schedule: Schedule, { delivery }: Category): Change<string>[] {
  const { launchAt, closedAt, outcome } = schedule
  const paragraphs: Change<string>[] = []
  if (chance(random, 0.3)) {
    paragraphs.push({
      at: momentBetween(random, launchAt, closedAt),
      value: pick(random, paragraphsFor(updates, delivery)),
    })
  }
  if (outcome === 'FUNDED' && chance(random, 0.4)) {
    paragraphs.push({ at: closedAt + intBetween(random, day / 24, 2 * day), value: pick(random, farewells) })
  }
  return paragraphs
}

// Followers come while a campaign waits for its launch, then with its pledges, and after the history's end a little
// faster, so that a visitor sees the number move. It only grows, and stays when the campaign has closed.
function followersAt({ schedule, followers }: CampaignPlan, time: number): number {
  const { approvedAt, launchAt, closedAt } = schedule
  const waited = progress(time, approvedAt, launchAt)
  const lived = progress(time, launchAt, closedAt) ** 0.7
  const gained = Math.max(0, followers.atClose - followers.atLaunch)
  const extra = Math.max(0, Math.min(time, closedAt) - followers.extraFrom) / followers.extraEveryMs
  return Math.floor(followers.atLaunch * waited + gained * lived + extra)
}

function progress(time: number, from: number, to: number): number {
  return Math.min(1, Math.max(0, (time - from) / (to - from)))
}

// A cancelled campaign ended when it was cancelled.
function endDateAt({ endAt, closedAt, outcome }: Schedule, time: number): number {
  return outcome === 'CANCELLED' && time >= closedAt ? closedAt : endAt
}

function momentBetween(random: Random, from: number, to: number): number {
  return Math.floor(from + (to - from) * between(random, 0.1, 0.9))
}
