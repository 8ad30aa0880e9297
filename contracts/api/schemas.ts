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

const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: '2026-03-01T12:00:00.000Z' })
const timestampForm = 'ISO 8601 in UTC, with milliseconds and a trailing Z.'

// Web addresses are passed on unchanged: a check here could only hide a campaign.
const webAddress = z.string().meta({ format: 'uri' })

const creator = z
  .object({
    name: z.string().meta({ description: 'The public name.' }),
    profile_url: webAddress.meta({ description: "The creator's page on the platform." }),
    avatar_url: webAddress
      .nullable()
      .meta({ description: "The web address of the creator's picture; null if there is none." }),
  })
  .meta({ id: 'Creator', description: "The public profile of the campaign's creator." })

const projectFields = {
  id: z.string().meta({ description: 'An opaque, stable identifier.' }),
  slug: z.string().meta({
    description:
      'The URL-safe name, used in the path of the detail. It may change; then the old name is not found any more.',
  }),
  url: webAddress.meta({ description: "The campaign's page on the platform." }),
  title: z.string().meta({ description: 'The title, as plain text.' }),
  subtitle: z
    .string()
    .nullable()
    .meta({ description: 'The subtitle, as plain text; null if there is none.' }),
  category: z.string().meta({ description: 'The value that the query parameter `category` must equal.' }),
  subcategory: z
    .string()
    .nullable()
    .meta({ description: 'A narrower category within `category`; null if there is none.' }),
  location: z.string().nullable().meta({ description: 'A place, as free text; null if there is none.' }),
  image_url: webAddress
    .nullable()
    .meta({ description: 'The web address of the main picture; null if there is none.' }),
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
  follower_count: count.meta({ description: 'The number of people who follow the campaign.' }),
  status: z.enum(publicStatuses).meta({
    description:
      'LIVE: it runs. FUNDED: it ended and reached its goal. FAILED: it ended without. CANCELLED: its creator ended it. ' +
      'A campaign with any other status is not public.',
  }),
  campaign_type: z.string().meta({
    description: 'How the campaign is funded. The platform may add values.',
    example: 'ALL_OR_NOTHING',
  }),
  project_type: z
    .string()
    .meta({ description: 'What kind of project it is. The platform may add values.', example: 'COMIC' }),
  is_staff_pick: z.boolean().meta({ description: "Whether the platform's staff recommend it." }),
  has_adult_content: z.boolean().meta({ description: 'Whether it is marked as adult content.' }),
  uses_ai: z.boolean().meta({ description: 'Whether the creator declared the use of generative AI.' }),
  tags: z.array(z.string()).meta({ description: 'Free labels; empty if there are none.' }),
  launch_date: timestamp
    .nullable()
    .meta({ description: `When the campaign began; null if that is not known. ${timestampForm}` }),
  end_date: timestamp
    .nullable()
    .meta({ description: `When the campaign ends or ended; null if that is not known. ${timestampForm}` }),
  days_remaining: count.meta({
    description:
      'Whole days until `end_date`, rounded up; 0 if it has passed or there is none. It was right when the response was ' +
      'computed, and decreases with time. That is not a change of the campaign: `updated_since` does not report it. A ' +
      'mirror must compute it itself from `end_date`.',
  }),
  created_at: timestamp.meta({ description: `When the campaign was created. ${timestampForm}` }),
  updated_at: timestamp.meta({
    description:
      'When something that readers can see of this campaign last changed: a list field, its texts or its rewards. Of two ' +
      'copies of one campaign, the one with the later value is the newer. Do not send it as `updated_since`: changes with ' +
      `an earlier value may still become visible. Send \`X-Data-As-Of\`. ${timestampForm}`,
  }),
  creator,
}

export const projectSchema = z
  .object(projectFields)
  .meta({ id: 'Project', description: 'A public campaign as shown in lists.' })

export const rewardSchema = z
  .object({
    reward_id: z.string().meta({ description: 'Unique within its campaign.' }),
    title: z.string().meta({ description: 'The title of the tier, as plain text.' }),
    description: z.string().meta({ description: 'What a backer receives, as text.' }),
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
    description: z
      .string()
      .meta({ description: "The campaign's full description, as the creator wrote it." }),
    risks: z.string().meta({ description: 'What the creator says about risks and challenges.' }),
    rewards: z
      .array(rewardSchema)
      .meta({ description: "The reward tiers in the campaign's order; empty if there are none." }),
  })
  .meta({ id: 'ProjectDetail', description: 'A public campaign with its texts and reward tiers.' })

export const statsSchema = z
  .object({
    currency: z.string().meta({ description: 'The ISO 4217 code of the amounts in this object.' }),
    total_raised: amount.meta({
      description: 'The sum of all valid pledges to public campaigns, in major units of `currency`.',
    }),
    total_pledges: count.meta({ description: 'The number of valid pledges to public campaigns.' }),
    total_backers: count.meta({
      description:
        'The number of distinct backers. A backer of several campaigns counts once. It may include a backer shortly before ' +
        'the pledge is in total_pledges, but is never above total_pledges.',
    }),
    total_creators: count.meta({ description: 'The number of distinct creators of public campaigns.' }),
    projects_total: count.meta({
      description: 'The number of public campaigns: the `total` of `GET /projects` without filters.',
    }),
    projects_live: count.meta({ description: 'The number of campaigns with the status LIVE.' }),
    projects_funded: count.meta({ description: 'The number of campaigns with the status FUNDED.' }),
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
    categories: z
      .array(
        z
          .object({
            category: z.string().meta({ description: 'The value of `category` of these campaigns.' }),
            project_count: count.meta({ description: 'The number of public campaigns in the category.' }),
          })
          .meta({ id: 'CategoryCount', description: 'The number of public campaigns in a category.' }),
      )
      .meta({ description: 'Every category with public campaigns, the largest first.' }),
    generated_at: timestamp.meta({ description: `When these numbers were computed. ${timestampForm}` }),
  })
  .meta({ id: 'Stats', description: 'Statistics of the public campaigns of the platform.' })

export const paginationSchema = z
  .object({
    total: count.meta({ description: 'The number of campaigns that match the query, on all pages.' }),
    limit: count.meta({ description: 'The largest number of campaigns on this page, as requested.' }),
    offset: count.meta({ description: 'The number of campaigns before this page, as requested.' }),
    has_more: z.boolean().meta({ description: 'Whether there is another page after this one.' }),
  })
  .meta({ id: 'Pagination', description: 'The place of this page in the whole list.' })

export const projectListBodySchema = z
  .object({
    data: z.array(projectSchema).meta({ description: 'The campaigns of this page.' }),
    pagination: paginationSchema,
  })
  .meta({ id: 'ProjectListBody', description: 'A page of campaigns.' })

export const projectDetailBodySchema = z
  .object({ data: projectDetailSchema })
  .meta({ id: 'ProjectDetailBody', description: 'One campaign.' })

export const statsBodySchema = z
  .object({ data: statsSchema })
  .meta({ id: 'StatsBody', description: 'The statistics of the platform.' })

export const serviceSchema = z
  .object({
    title: z.string().meta({ description: 'The name of the API.' }),
    documentation_url: webAddress.nullable().meta({ description: 'The guide; null if there is no portal.' }),
    keys_url: webAddress.nullable().meta({
      description: 'Where to get a key and a secret; null if there is no portal: ask the operator.',
    }),
    openapi_url: z.string().meta({
      format: 'uri-reference',
      description: 'The OpenAPI document. It needs no key.',
    }),
    versions: z
      .array(
        z
          .object({
            name: z.string().meta({ description: 'As in the path.', example: 'v1' }),
            url: z.string().meta({
              format: 'uri-reference',
              description: 'The base address: the paths of resources follow it.',
            }),
            deprecated_at: timestamp.nullable().meta({
              description: `Since when new programs should not use it; null if it is current. ${timestampForm}`,
            }),
            sunset_at: timestamp.nullable().meta({
              description: `When it may stop answering; null if that is not decided. ${timestampForm}`,
            }),
          })
          .meta({ id: 'Version', description: 'A version of the API.' }),
      )
      .meta({ description: 'The versions of the API, the oldest first.' }),
  })
  .meta({ id: 'Service', description: 'Where to go from here.' })

export const serviceBodySchema = z
  .object({ data: serviceSchema })
  .meta({ id: 'ServiceBody', description: 'Where to go from here.' })

export const errorBodySchema = z
  .object({
    error: z
      .object({
        code: z.enum(errorCodes).meta({ description: 'A stable code. Programs should use this field.' }),
        message: z.string().meta({ description: 'A text for people. Its wording may change.' }),
      })
      .meta({ description: 'Why the request failed.' }),
  })
  .meta({ id: 'ErrorBody', description: 'The body of every response with a status of 400 or above.' })

export type Project = z.infer<typeof projectSchema>
export type ProjectDetail = z.infer<typeof projectDetailSchema>
export type Reward = z.infer<typeof rewardSchema>
export type Stats = z.infer<typeof statsSchema>
export type Service = z.infer<typeof serviceSchema>
export type ProjectListBody = z.infer<typeof projectListBodySchema>
