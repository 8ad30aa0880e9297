/** One example of each body. The OpenAPI document shows them, and the tests parse them. */
import { apiTitle, basePath, openApiPath } from './conventions.ts'
import { invalidParameterBody } from './errors.ts'
import type { Project, ProjectDetail, ProjectListBody, Reward, Service, Stats } from './schemas.ts'

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

const rewardExample: Reward = {
  reward_id: 'print',
  title: 'The atlas, signed',
  description: 'A bound copy with a drawing of your choice on the first page.',
  amount: 45,
  quantity_available: 200,
  quantity_claimed: 163,
  quantity_remaining: 37,
}

const detailExample: ProjectDetail = {
  ...projectExample,
  description: 'We have spent four years drawing every lighthouse between Bergen and Cadiz.',
  risks: 'Printing may take longer than planned; the drawings are finished.',
  rewards: [rewardExample],
}

const statsExample: Stats = {
  currency: 'USD',
  total_raised: 4831250.75,
  total_pledges: 60214,
  total_backers: 41877,
  total_creators: 352,
  projects_total: 391,
  projects_live: 58,
  projects_funded: 201,
  success_rate: 60.36,
  average_pledge: 80.23,
  categories: [
    { category: 'Publishing', project_count: 240 },
    { category: 'Games', project_count: 151 },
  ],
  generated_at: '2026-03-19T10:15:30.123Z',
}

const serviceExample: Service = {
  title: apiTitle,
  documentation_url: 'https://developers.crowdfunding.example/docs',
  keys_url: 'https://developers.crowdfunding.example/access',
  openapi_url: `https://api.crowdfunding.example${openApiPath}`,
  versions: [
    {
      name: 'v1',
      url: `https://api.crowdfunding.example${basePath}`,
      deprecated_at: null,
      sunset_at: null,
    },
  ],
}

export const listBodyExample: ProjectListBody = {
  data: [projectExample],
  pagination: { total: 391, limit: 1, offset: 0, has_more: true },
}

export const detailBodyExample = { data: detailExample }

export const statsBodyExample = { data: statsExample }

export const serviceBodyExample = { data: serviceExample }

export const invalidParameterExample = invalidParameterBody('limit', 'must be a whole number from 1 to 100')
