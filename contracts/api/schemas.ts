/**
 * The bodies of the API: one schema for each, every field named.
 *
 * They are the allowlist. What leaves the service has gone through `parse` of one of them, which drops every field
 * that is not named here and refuses values of the wrong kind. The OpenAPI document is generated from the same.
 */
import { z } from 'zod'
import { publicStatuses } from '../events/event.ts'
import { errorCodes } from './errors.ts'

const amount = z.number().nonnegative()
// Not z.int(), which stops at 2^53-1: a platform may say more, and one such number must not take its page away.
const count = z
  .number()
  .nonnegative()
  .refine(Number.isInteger)
  .meta({ override: { type: 'integer' } })

const timestamp = z.iso.datetime({ precision: 3 }).meta({
  description: 'A moment in UTC: ISO 8601 with milliseconds and a trailing Z.',
  example: '2026-03-01T12:00:00.000Z',
})

// A web address is passed on as the platform published it; checking it again here could only hide a campaign.
const webAddress = z.string().meta({ format: 'uri' })

const creator = z
  .object({
    name: z.string(),
    profile_url: webAddress,
    avatar_url: webAddress.nullable(),
  })
  .meta({ id: 'Creator', description: 'The public profile of whoever runs the campaign.' })

const projectFields = {
  id: z.string().meta({ description: 'Opaque and stable identifier.' }),
  slug: z.string().meta({
    description: 'URL-safe name; the path of the detail. It may change; the old one is then unknown.',
  }),
  url: webAddress.meta({ description: "The campaign's page on the platform." }),
  title: z.string(),
  subtitle: z.string().nullable(),
  category: z.string().meta({ description: 'The value that the parameter `category` is compared with.' }),
  subcategory: z.string().nullable(),
  location: z.string().nullable().meta({ description: 'A place, in free text.' }),
  image_url: webAddress.nullable(),
  currency: z
    .string()
    .meta({ description: 'ISO 4217 code of every amount of this campaign.', example: 'EUR' }),
  goal_amount: amount.meta({ description: 'In major units of `currency`.' }),
  pledged_amount: amount.meta({
    description: 'The sum of the pledges that count, in major units of `currency`.',
  }),
  percent_funded: amount.meta({
    description:
      '100 * pledged_amount / goal_amount, to two decimals; above 100 when overfunded, 0 when the goal is 0.',
  }),
  backer_count: count.meta({ description: 'Distinct backers with a pledge that counts.' }),
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
    description: 'Whole days until end_date, rounded up; 0 when that is over or there is none.',
  }),
  created_at: timestamp,
  creator,
}

export const projectSchema = z
  .object(projectFields)
  .meta({ id: 'Project', description: 'A public campaign as lists show it.' })

export const rewardSchema = z
  .object({
    reward_id: z.string().meta({ description: 'Unique within its campaign.' }),
    title: z.string(),
    description: z.string(),
    amount: amount.meta({ description: "The tier's price, in major units of the campaign's currency." }),
    quantity_available: count.nullable().meta({ description: 'How many there are; null when unlimited.' }),
    quantity_claimed: count.meta({ description: 'Pledges that count and chose this tier.' }),
    quantity_remaining: count.nullable().meta({ description: 'How many are left; null when unlimited.' }),
  })
  .meta({ id: 'Reward', description: 'A reward tier.' })

export const projectDetailSchema = z
  .object({
    ...projectFields,
    description: z.string(),
    risks: z.string(),
    rewards: z.array(rewardSchema),
  })
  .meta({ id: 'ProjectDetail', description: 'A public campaign with its texts and its reward tiers.' })

export const statsSchema = z
  .object({
    currency: z.string().meta({ description: 'ISO 4217 code of the amounts below.' }),
    total_raised: amount.meta({ description: 'Sum of the pledges that count, over all public campaigns.' }),
    total_pledges: count,
    total_backers: count.meta({
      description: 'Distinct backers; one who backed several campaigns counts once.',
    }),
    total_creators: count,
    projects_total: count,
    projects_live: count,
    projects_funded: count,
    success_rate: amount.max(100).meta({
      description:
        'Percent of the ended campaigns that were funded: 100 * FUNDED / (FUNDED + FAILED + CANCELLED).',
    }),
    average_pledge: amount.meta({ description: 'total_raised / total_pledges; 0 when there are none.' }),
    categories: z.array(
      z
        .object({ category: z.string(), project_count: count })
        .meta({ id: 'CategoryCount', description: 'How many public campaigns a category has.' }),
    ),
    generated_at: timestamp.meta({ description: 'When these numbers were computed.' }),
  })
  .meta({ id: 'Stats', description: 'The platform in numbers, over its public campaigns.' })

export const paginationSchema = z
  .object({
    total: count.meta({ description: 'Campaigns that the query matches, on all pages together.' }),
    limit: count,
    offset: count,
    has_more: z.boolean().meta({ description: 'Whether campaigns follow after this page.' }),
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
      code: z.enum(errorCodes).meta({ description: 'Stable; what a program should look at.' }),
      message: z.string().meta({ description: 'For people; its wording may change.' }),
    }),
  })
  .meta({ id: 'ErrorBody', description: 'The body of every response with a status of 400 or above.' })

export type Project = z.infer<typeof projectSchema>
export type ProjectDetail = z.infer<typeof projectDetailSchema>
export type Reward = z.infer<typeof rewardSchema>
export type Stats = z.infer<typeof statsSchema>
export type ProjectListBody = z.infer<typeof projectListBodySchema>
