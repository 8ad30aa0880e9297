/** Campaigns for the tests of the query service. */
import type { CampaignRow } from './tables.ts'

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
