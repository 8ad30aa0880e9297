/**
 * The bodies of the API: one schema per body, with every field named.
 *
 * The schemas are the allowlist. Every body is parsed by one of them before it leaves the service. This drops every
 * field that is not named here, and refuses values of the wrong type. The OpenAPI document is generated from the same
 * schemas.
 */
import { z } from 'zod'
import { publicStatuses } from '../events/event.ts'
import { errorCodes } from './errors.ts'

const amount = z.number().nonnegative()
// Not z.int(), which stops at 2^53-1: the platform may send more, and one such number must not break its page.
const count = z
  .number()
  .nonnegative()
  .refine(Number.isInteger)
  .meta({ override: { type: 'integer' } })

const timestamp = z.iso.datetime({ precision: 3 }).meta({
  description: 'A moment in UTC: ISO 8601 with milliseconds and a trailing Z.',
  example: '2026-03-01T12:00:00.000Z',
})

// Web addresses are passed on unchanged: a check here could only hide a campaign.
const webAddress = z.string().meta({ format: 'uri' })

const creator = z
  .object({
    name: z.string(),
    profile_url: webAddress,
    avatar_url: webAddress.nullable(),
  })
  .meta({ id: 'Creator', description: "The public profile of the campaign's creator." })

const projectFields = {
  id: z.string().meta({ description: 'An opaque, stable identifier.' }),
  slug: z.string().meta({
    description:
      'The URL-safe name, used in the path of the detail. It may change; then the old name is not found any more.',
  }),
  url: webAddress.meta({ description: "The campaign's page on the platform." }),
  title: z.string(),
  subtitle: z.string().nullable(),
  category: z.string().meta({ description: 'The value that the query parameter `category` must equal.' }),
  subcategory: z.string().nullable(),
  location: z.string().nullable().meta({ description: 'A place, as free text.' }),
  image_url: webAddress.nullable(),
  currency: z
    .string()
    .meta({ description: 'The ISO 4217 code of all amounts of this campaign.', example: 'EUR' }),
  goal_amount: amount.meta({ description: 'The funding goal, in major units of `currency`.' }),
  pledged_amount: amount.meta({
    description: 'The sum of all valid pledges, in major units of `currency`.',
  }),
  percent_funded: amount.meta({
    description:
      '100 * pledged_amount / goal_amount, with two decimals. Above 100 if overfunded; 0 if the goal is 0.',
  }),
  backer_count: count.meta({ description: 'The number of distinct backers with a valid pledge.' }),
  follower_count: count,
  status: z.enum(publicStatuses),
  campaign_type: z.string().meta({ example: 'ALL_OR_NOTHING' }),
  project_type: z.string().meta({ example: 'COMIC' }),
  is_staff_pick: z.boolean(),
  has_adult_content: z.boolean(),
  uses_ai: z.boolean(),
  tags: z.array(z.string()),
  launch_date: timestamp.nullable(),
  end_date: timestamp.nullable(),
  days_remaining: count.meta({
    description: 'Whole days until end_date, rounded up; 0 if it has passed or there is none.',
  }),
  created_at: timestamp,
  creator,
}

export const projectSchema = z
  .object(projectFields)
  .meta({ id: 'Project', description: 'A public campaign as shown in lists.' })

export const rewardSchema = z
  .object({
    reward_id: z.string().meta({ description: 'Unique within its campaign.' }),
    title: z.string(),
    description: z.string(),
    amount: amount.meta({ description: "The price of the tier, in major units of the campaign's currency." }),
    quantity_available: count.nullable().meta({ description: 'The total quantity; null if unlimited.' }),
    quantity_claimed: count.meta({ description: 'The number of valid pledges for this tier.' }),
    quantity_remaining: count
      .nullable()
      .meta({ description: 'The quantity that is left; null if unlimited.' }),
  })
  .meta({ id: 'Reward', description: 'A reward tier.' })

export const projectDetailSchema = z
  .object({
    ...projectFields,
    description: z.string(),
    risks: z.string(),
    rewards: z.array(rewardSchema),
  })
  .meta({ id: 'ProjectDetail', description: 'A public campaign with its texts and reward tiers.' })

export const statsSchema = z
  .object({
    currency: z.string().meta({ description: 'The ISO 4217 code of the amounts in this object.' }),
    total_raised: amount.meta({ description: 'The sum of all valid pledges to public campaigns.' }),
    total_pledges: count,
    total_backers: count.meta({
      description:
        'The number of distinct backers. A backer of several campaigns counts once. It may include a backer shortly before ' +
        'the pledge is in total_pledges, but is never above total_pledges.',
    }),
    total_creators: count,
    projects_total: count,
    projects_live: count,
    projects_funded: count,
    success_rate: amount.max(100).meta({
      description:
        'The percentage of ended campaigns that were funded: 100 * FUNDED / (FUNDED + FAILED + CANCELLED), with two ' +
        'decimals, rounded half up.',
    }),
    average_pledge: amount.meta({
      description:
        'total_raised / total_pledges, rounded half up to the decimals of `currency` (two for USD, none for JPY); 0 if ' +
        'there are no pledges.',
    }),
    categories: z.array(
      z
        .object({ category: z.string(), project_count: count })
        .meta({ id: 'CategoryCount', description: 'The number of public campaigns in a category.' }),
    ),
    generated_at: timestamp.meta({ description: 'The time at which these numbers were computed.' }),
  })
  .meta({ id: 'Stats', description: 'Statistics of the public campaigns of the platform.' })

export const paginationSchema = z
  .object({
    total: count.meta({ description: 'The number of campaigns that match the query, on all pages.' }),
    limit: count,
    offset: count,
    has_more: z.boolean().meta({ description: 'Whether there is another page after this one.' }),
  })
  .meta({ id: 'Pagination' })

export const projectListBodySchema = z
  .object({ data: z.array(projectSchema), pagination: paginationSchema })
  .meta({ id: 'ProjectListBody' })

export const projectDetailBodySchema = z
  .object({ data: projectDetailSchema })
  .meta({ id: 'ProjectDetailBody' })

export const statsBodySchema = z.object({ data: statsSchema }).meta({ id: 'StatsBody' })

export const errorBodySchema = z
  .object({
    error: z.object({
      code: z.enum(errorCodes).meta({ description: 'A stable code. Programs should use this field.' }),
      message: z.string().meta({ description: 'A text for people. Its wording may change.' }),
    }),
  })
  .meta({ id: 'ErrorBody', description: 'The body of every response with a status of 400 or above.' })

export type Project = z.infer<typeof projectSchema>
export type ProjectDetail = z.infer<typeof projectDetailSchema>
export type Reward = z.infer<typeof rewardSchema>
export type Stats = z.infer<typeof statsSchema>
export type ProjectListBody = z.infer<typeof projectListBodySchema>
