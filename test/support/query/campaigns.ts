/** Campaigns for the tests of the query service. */
import fc from 'fast-check'
import { columns } from '../../../contracts/tables/campaign-columns.ts'
import type { CampaignRow } from './tables.ts'

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
  ...{
    goal_amount: amount,
    pledged_amount: amount,
    percent_funded: fc.nat(10 ** 6).map(n => (n / 100).toFixed(2)),
  },
  ...{ backer_count: count, follower_count: count, uses_ai: fc.boolean(), is_staff_pick: fc.boolean() },
  ...{
    status: fc.constantFrom('LIVE', 'FUNDED', 'FAILED', 'CANCELLED'),
    tags: fc.array(text, { maxLength: 3 }),
  },
  ...{ launch_date: nullable(moment), end_date: nullable(moment), created_at: moment },
  ...{ creator_name: text, creator_avatar_url: optional, description: text, risks: text },
  rewards: fc.array(reward, { maxLength: 3 }),
})
