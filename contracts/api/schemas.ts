/**
 * The schemas that several bodies of the API share, with every field named. Those of one resource stand with it
 * (services/query/endpoints).
 *
 * The schemas are the allowlist. Every body is parsed by one of them before it leaves the service. This drops every
 * field that is not named, and refuses values of the wrong type. The OpenAPI document is generated from the same schemas.
 */
import { z } from 'zod'
import { publicStatuses } from '../events/event.ts'
import { errorCodes } from './errors.ts'

export const amount = z.number().nonnegative()
// Not z.int(), which stops at 2^53-1: the platform may send more, and one such number must not break its page.
export const count = z
  .number()
  .nonnegative()
  .refine(Number.isInteger)
  .meta({ override: { type: 'integer' } })

export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: '2026-03-01T12:00:00.000Z' })
export const timestampForm = 'ISO 8601 in UTC, with milliseconds and a trailing Z.'

// Web addresses are passed on unchanged: a check here could only hide a campaign.
export const webAddress = z.string().meta({ format: 'uri' })

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
