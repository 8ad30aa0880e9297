/** Campaigns for the tests of the query service. */
import fc from 'fast-check'
import { columns } from '../../../contracts/tables/campaign-columns.ts'
import type { ProjectDetailRow } from '../../../services/query/campaigns/campaign-fields.ts'
import { addedFields } from '../events/sample-events.ts'
import type { CampaignRow } from './tables.ts'

export type Amount = 'goal_amount' | 'pledged_amount' | 'percent_funded'

/** What a realistic campaign shows, without its amounts. Its slug and texts contain the id. */
export function shownFields(id: string): Omit<ProjectDetailRow, Amount> {
  return {
    ...addedFields,
    campaign_id: id,
    slug: `slug-${id}`,
    url: `https://crowdfunding.example/projects/${id}`,
    title: `Title of ${id}`,
    subtitle: null,
    category: 'Games',
    subcategory: null,
    location: null,
    image_url: null,
    currency: 'EUR',
    backer_count: 10,
    follower_count: 3,
    status: 'LIVE',
    campaign_type: 'ALL_OR_NOTHING',
    project_type: 'COMIC',
    is_staff_pick: false,
    has_adult_content: false,
    uses_ai: false,
    tags: [],
    launch_date: '2026-01-01 00:00:00.000',
    end_date: '2026-02-01 00:00:00.000',
    created_at: '2025-12-01 10:20:30.456',
    creator_name: 'A Creator',
    creator_profile_url: 'https://crowdfunding.example/creators/a',
    creator_avatar_url: null,
    description: 'What it is about.',
    risks: 'What may go wrong.',
    rewards: [],
    updated_at: '2026-01-02 03:04:05.678',
  }
}

/** The columns that the API shows in a list, or only in a detail. */
export function shownColumns(where: 'list' | 'detail'): string[] {
  return columns.filter(({ shown }) => shown === where).map(({ name }) => name)
}

/** A campaign with every field, and with values that are hard to encode. */
export const fullCampaign: Partial<CampaignRow> = {
  subtitle: 'A subtitle with "quotes", \\ and \u2028',
  category: 'Film & Video',
  subcategory: 'Shorts',
  location: 'São Paulo, Brasil 🎬',
  image_url: 'https://crowdfunding.example/c1.jpg',
  currency: 'KWD',
  goal_amount: '1234567.125',
  pledged_amount: '0.001',
  percent_funded: '0.01',
  backer_count: 1,
  follower_count: 9_007_199_254_740_991,
  status: 'FUNDED',
  campaign_type: 'KEEP_WHAT_YOU_GET',
  project_type: 'STANDARD',
  is_staff_pick: true,
  has_adult_content: true,
  uses_ai: true,
  tags: ['short', 'film'],
  launch_date: '1999-12-31 23:59:59.999',
  end_date: '2299-12-31 23:59:59.999',
  created_at: '1900-01-01 00:00:00.000',
  creator_avatar_url: 'https://crowdfunding.example/a.jpg',
  rewards: [
    {
      reward_id: 'r2',
      title: 'Limited',
      description: 'Ten of them',
      amount: 12.5,
      quantity_available: 10,
      quantity_claimed: 4,
      quantity_remaining: 6,
    },
    {
      reward_id: 'r1',
      title: 'Unlimited',
      description: '',
      amount: 0,
      quantity_available: null,
      quantity_claimed: 7,
      quantity_remaining: null,
    },
  ],
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const nullable = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null })
const optional = nullable(text)
const moment = fc
  .date({ min: new Date('1970-01-02'), max: new Date('2200-01-01'), noInvalidDate: true })
  .map(date => date.toISOString().replace('T', ' ').replace('Z', ''))
const amount = fc
  .bigInt({ min: 0n, max: 10n ** 13n })
  .map(units => `${units / 10_000n}.${String(units % 10_000n).padStart(4, '0')}`)
const count = fc.nat()
const reward = fc.record({
  ...{ reward_id: text, title: text, description: text, amount: amount.map(Number) },
  ...{ quantity_available: nullable(count), quantity_claimed: count, quantity_remaining: nullable(count) },
})
/** The fields of any public campaign. */
export const anyCampaign: fc.Arbitrary<Partial<CampaignRow>> = fc.record({
  ...{ title: text, subtitle: optional, subcategory: optional, location: optional, image_url: optional },
  goal_amount: amount,
  pledged_amount: amount,
  percent_funded: fc.nat(10 ** 6).map(n => (n / 100).toFixed(2)),
  ...{ backer_count: count, follower_count: count, uses_ai: fc.boolean(), is_staff_pick: fc.boolean() },
  status: fc.constantFrom('LIVE', 'FUNDED', 'FAILED', 'CANCELLED'),
  tags: fc.array(text, { maxLength: 3 }),
  ...{ launch_date: nullable(moment), end_date: nullable(moment), created_at: moment },
  ...{ creator_name: text, creator_avatar_url: optional, description: text, risks: text },
  rewards: fc.array(reward, { maxLength: 3 }),
})
