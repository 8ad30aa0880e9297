/** The examples that several resources share. The OpenAPI document shows them, and the tests parse them. */
import { invalidParameterBody } from './errors.ts'
import type { Project } from './schemas.ts'

export const projectExample: Project = {
  id: 'cmp_8d1f42',
  slug: 'the-lighthouse-atlas',
  url: 'https://crowdfunding.example/projects/the-lighthouse-atlas',
  title: 'The Lighthouse Atlas',
  subtitle: 'Two hundred lighthouses, drawn by hand',
  category: 'Publishing',
  subcategory: 'Art Books',
  location: 'Porto, Portugal',
  image_url: 'https://crowdfunding.example/images/the-lighthouse-atlas.jpg',
  currency: 'EUR',
  goal_amount: 12000,
  pledged_amount: 15480.5,
  percent_funded: 129,
  backer_count: 412,
  follower_count: 1630,
  status: 'LIVE',
  campaign_type: 'ALL_OR_NOTHING',
  project_type: 'STANDARD',
  is_staff_pick: true,
  has_adult_content: false,
  uses_ai: false,
  tags: ['maps', 'illustration'],
  launch_date: '2026-03-01T09:00:00.000Z',
  end_date: '2026-03-31T09:00:00.000Z',
  days_remaining: 12,
  created_at: '2026-01-14T16:20:05.250Z',
  updated_at: '2026-03-19T10:12:41.007Z',
  creator: {
    name: 'Studio Farol',
    profile_url: 'https://crowdfunding.example/creators/studio-farol',
    avatar_url: null,
  },
}

export const invalidParameterExample = invalidParameterBody('limit', 'must be a whole number from 1 to 100')
