/** One campaign with its whole life, and its state at any time. */
import type { CampaignState } from '../../contracts/events/event.ts'
import { catalog } from './catalog.ts'
import { goalAbove, goalAtMost, priceMinor } from './money.ts'
import { backersMaxOf, type DemoOptions, type Outline, siteUrl } from './outline.ts'
import { type PlannedPledge, planPledges, totalsOf } from './pledges.ts'
import { between, chance, intBetween, logNormal, opaqueId, pick, type Random, randomOf } from './random.ts'
import { planRewards, secondBatch } from './rewards.ts'
import { day, hour, type Outcome, statusAt } from './schedule.ts'
import { composeTexts, paragraphsFor } from './texts.ts'

export type CampaignPlan = ReturnType<typeof planCampaign>

/** Something that is added at a time (ms). */
interface Addition<T> {
  at: number
  value: T
}

const never = Number.POSITIVE_INFINITY

/** Plans the campaign of an outline, including all of its pledges. */
export function planCampaign(options: DemoOptions, outline: Outline) {
  const { seed, now } = options
  const { number, schedule, category, genre, currency, creator, location } = outline
  const { createdAt, submittedAt, launchAt, closedAt, endAt, outcome } = schedule
  const random = randomOf(seed, 'campaign', number)
  const whileLive = (): number => momentBetween(random, launchAt, closedAt)
  const staffPickAt = chance(random, 0.1) ? launchAt + Math.floor(between(random, hour, 4 * day)) : never
  const count = pledgeCountOf(random, outcome, staffPickAt < closedAt)
  const offers = planRewards(random, outline, count)
  const plan = { schedule, currency, offers, backersMax: backersMaxOf(options) }
  const pledges = planPledges(randomOf(seed, 'pledges', number), count, plan)
  const campaign_id = opaqueId('cmp', seed, number)
  const mayBeAdult = category.name === 'Comics' || category.name === 'Art'
  // The part that is the same in all of the campaign's states.
  const constant = {
    campaign_id,
    created_at: createdAt,
    creator,
    currency,
    category: category.name,
    project_type: category.projectType,
    // A campaign that keeps what it raises cannot fail.
    campaign_type: outcome !== 'FAILED' && chance(random, 0.1) ? 'KEEP_IT_ALL' : 'ALL_OR_NOTHING',
    location: chance(random, 0.04) ? null : location,
    uses_ai: chance(random, 0.05),
    has_adult_content: mayBeAdult && chance(random, 0.06),
    subcategory: chance(random, 0.03) ? null : genre.name,
    goal_amount_minor: goalOf(random, outline, pledges),
  }
  const imageUrl = chance(random, 0.02) ? null : `${siteUrl}/media/campaigns/${campaign_id}.webp`
  const texts = composeTexts(random, { ...outline, endAt })
  // When the draft gets its full text.
  const writtenAt = momentBetween(random, createdAt, submittedAt)
  const hasWorkingTitle = chance(random, 0.15)
  const paragraphs: Addition<string>[] = []
  if (chance(random, 0.3)) {
    const at = whileLive()
    paragraphs.push({ at, value: pick(random, paragraphsFor(catalog().updates, category)) })
  }
  if (outcome === 'FUNDED' && chance(random, 0.4)) {
    const at = closedAt + intBetween(random, hour, 2 * day)
    paragraphs.push({ at, value: pick(random, catalog().farewells) })
  }
  const extra = secondBatch(offers, outline)
  const extraRewards = extra && count > 60 && chance(random, 0.35) ? [{ at: whileLive(), value: extra }] : []
  // When it becomes a second edition, under another slug.
  const secondEditionAt = chance(random, 0.02) ? whileLive() : never
  const followers = {
    atLaunch: Math.floor(count * between(random, 0.1, 0.5)) + intBetween(random, 0, 12),
    atClose: Math.floor(count * between(random, 0.6, 2.4)) + intBetween(random, 12, 30),
    extraEveryMs: (30 * day) / (200 + 20 * count),
    extraFrom: Math.max(now, launchAt),
  }
  return {
    ...outline,
    constant,
    offers,
    pledges,
    texts,
    imageUrl,
    writtenAt,
    hasWorkingTitle,
    staffPickAt,
    paragraphs,
    extraRewards,
    secondEditionAt,
    followers,
  }
}

/** The campaign's state at a time (ms) after its creation. */
export function campaignAt(plan: CampaignPlan, time: number, version = time * 1000): CampaignState {
  const { schedule, constant, texts } = plan
  const isWritten = time >= plan.writtenAt
  const status = statusAt(schedule, time)
  const wasLaunched = time >= schedule.launchAt
  const { title, slug } = namesAt(plan, time)
  const rewards = plan.offers.map(({ reward }) => reward)
  const opening = isWritten ? texts.description : texts.opening
  return {
    ...constant,
    version,
    changed_at: time,
    status,
    slug,
    url: `${siteUrl}/projects/${slug}`,
    title,
    subtitle: isWritten ? texts.subtitle : null,
    image_url: isWritten ? plan.imageUrl : null,
    is_staff_pick: time >= plan.staffPickAt,
    tags: texts.tags,
    follower_count: followersAt(plan, time),
    launch_date: wasLaunched ? schedule.launchAt : null,
    // A cancelled campaign ended when it was cancelled.
    end_date: wasLaunched ? (status === 'CANCELLED' ? schedule.closedAt : schedule.endAt) : null,
    description: [opening, ...addedBy(time, plan.paragraphs)].join('\n\n'),
    risks: isWritten ? texts.risks : '',
    rewards: isWritten ? [...rewards, ...addedBy(time, plan.extraRewards)] : rewards.slice(0, 2),
  }
}

/** The times of the campaign's own events, in ms, ascending. */
export function campaignMoments(plan: CampaignPlan): number[] {
  const { createdAt, submittedAt, approvedAt, launchAt, closedAt } = plan.schedule
  const followerUpdates = Array.from({ length: 7 }, (_, i) =>
    Math.floor(launchAt + ((closedAt - launchAt) * (i + 0.5)) / 7),
  )
  const changes = [plan.writtenAt, plan.staffPickAt, plan.secondEditionAt]
  const additions = [...plan.extraRewards, ...plan.paragraphs].map(({ at }) => at)
  const steps = [createdAt, submittedAt, approvedAt, launchAt, closedAt]
  const moments = new Set([...steps, ...followerUpdates, ...changes, ...additions])
  return [...moments].filter(moment => moment < never).sort((a, b) => a - b)
}

/** The number of pledges of a campaign: log-normally distributed above the minimum, with a maximum. */
const pledgeCounts: Readonly<
  Record<Outcome, { least: number; most: number; median: number; spread: number }>
> = {
  FUNDED: { least: 15, most: 5_000, median: 90, spread: 1.35 },
  FAILED: { least: 0, most: 400, median: 9, spread: 1.1 },
  CANCELLED: { least: 0, most: 400, median: 14, spread: 1.2 },
  SUSPENDED: { least: 0, most: 400, median: 14, spread: 1.2 },
}

function pledgeCountOf(random: Random, outcome: Outcome, isStaffPick: boolean): number {
  const { least, most, median, spread } = pledgeCounts[outcome]
  return Math.min(most, least + Math.floor((isStaffPick ? 2 : 1) * logNormal(random, median, spread)))
}

/** Goals follow from the pledges: a funded campaign has reached its goal, despite later withdrawals and refunds. */
function goalOf(random: Random, { schedule, currency }: Outline, pledges: readonly PlannedPledge[]): number {
  const { outcome } = schedule
  const { lasting, promised } = totalsOf(pledges)
  const usual = priceMinor(logNormal(random, 4_000, 0.9), currency)
  if (outcome === 'FUNDED') return goalAtMost(lasting / Math.max(1.01, logNormal(random, 1.2, 0.35)))
  const share = outcome === 'FAILED' ? between(random, 0.02, 0.8) : between(random, 0.05, 0.9)
  return goalAbove(Math.max(promised / share, usual / 4))
}

function namesAt(plan: CampaignPlan, time: number): { title: string; slug: string } {
  const { title, slug } = plan
  if (plan.hasWorkingTitle && time < plan.writtenAt)
    return { title: `Draft: ${title}`, slug: `${slug}-draft` }
  return time < plan.secondEditionAt
    ? { title, slug }
    : { title: `${title}, Second Edition`, slug: `${slug}-second-edition` }
}

// Followers come while a campaign waits for its launch, and then with its pledges. After the history's end they come a
// little faster, so that a visitor sees the number change. It only grows, and stays when the campaign has closed.
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

function addedBy<T>(time: number, additions: readonly Addition<T>[]): T[] {
  return additions.filter(({ at }) => time >= at).map(({ value }) => value)
}

function momentBetween(random: Random, from: number, to: number): number {
  return Math.floor(from + (to - from) * between(random, 0.1, 0.9))
}
