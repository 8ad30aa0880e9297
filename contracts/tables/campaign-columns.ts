/**
 * The fields of a campaign: every one that a reader can see is declared here, once. From this list come
 * - the event's type (contracts/events/event.ts) and the rows of the ledger (services/projector/ingest/ledger-rows.ts);
 * - the columns of the ledger, of the read table, of the view `campaigns` and of what details read (campaign-sql.ts fills them into the SQL
 *   beside this file);
 * - what the fold copies, and what the comparison of a rebuild compares;
 * - which texts and web addresses of an event are checked (contracts/events/rules.ts);
 * - what the API shows: the presenter, the schemas, the example and with them the OpenAPI document.
 *
 * A new field is four changes by hand:
 * - a line here, with a `default`, which is that of its type (null, '', 0, false or []), and an `example` that is another value;
 * - a field at the end of campaign.avsc.json with `since: N`, where N is higher than every `schema_id` of all schemas and than their
 *   `earlier_ids`. The schema gets N as its `schema_id`, and the id that it had moves to `earlier_ids`;
 * - a migration in generation/ that consists of `${campaign_fields};`
 * - a line in the changelog.
 *
 * `npm run contracts` writes what follows from them, and `npm run format` sorts it. Names and order are part of `content_hash`: after a
 * change of this list every campaign that is folded gets a new `updated_at`.
 */
import { publicStatuses } from '../events/event.ts'

interface CampaignColumn {
  name: string
  /** In the read table and the view. If the fold copies the column, in the ledger too. */
  type: string
  /** `ledger` if the fold copies the ledger's column of the same name, `fold` if fold-campaigns.sql computes it. */
  from: 'ledger' | 'fold'
  /** The API shows it in lists and details, in details only, or not at all (`sql`: only data teams see it). */
  shown: 'list' | 'detail' | 'sql'
  /** Its path in the API, and in the event. Default: `name`. */
  api?: string
  event?: string
  /** Of a field that was added later: what events and rows have that were written before. As in the Avro schema. */
  default?: unknown
  /** The view has the column as a floating-point number too, under this name, for tools that cannot sum a Decimal. */
  float?: string
  /** The only values. */
  values?: readonly string[]
  format?: 'uri'
  /** For data teams: of the view's column. */
  comment: string
  /** For the API's consumers, as a sentence. Default: the comment. A timestamp's form is added to it. */
  description?: string
  /** Of the campaign that the OpenAPI document shows. `isExampleShown`: beside the field, too. */
  example?: unknown
  isExampleShown?: boolean
}

const timestamp = "DateTime64(3, 'UTC')"
const reward =
  'Tuple(reward_id String, title String, description String, amount Decimal(38, 4), quantity_available Nullable(UInt64), quantity_claimed UInt64, quantity_remaining Nullable(UInt64))'

export const campaignColumns = [
  {
    name: 'campaign_id',
    type: 'String',
    from: 'ledger',
    shown: 'list',
    api: 'id',
    comment: 'Opaque campaign identifier',
    description: 'An opaque, stable identifier.',
    example: 'cmp_8d1f42',
  },
  {
    name: 'slug',
    type: 'String',
    from: 'ledger',
    shown: 'list',
    comment: 'URL-safe name; normally unique, so join by campaign_id',
    description:
      'The URL-safe name, used in the path of the detail. It may change; then the old name is not found any more.',
    example: 'the-lighthouse-atlas',
  },
  {
    name: 'url',
    type: 'String',
    from: 'ledger',
    shown: 'list',
    format: 'uri',
    comment: 'Public web address',
    description: "The campaign's page on the platform.",
    example: 'https://crowdfunding.example/projects/the-lighthouse-atlas',
  },
  {
    name: 'title',
    type: 'String',
    from: 'ledger',
    shown: 'list',
    comment: 'Title',
    description: 'The title, as plain text.',
    example: 'The Lighthouse Atlas',
  },
  {
    name: 'subtitle',
    type: 'Nullable(String)',
    from: 'ledger',
    shown: 'list',
    comment: 'Subtitle',
    description: 'The subtitle, as plain text; null if there is none.',
    example: 'Two hundred lighthouses, drawn by hand',
  },
  {
    name: 'category',
    type: 'LowCardinality(String)',
    from: 'ledger',
    shown: 'list',
    comment: 'Main category',
    description: 'The value that the query parameter `category` must equal.',
    example: 'Publishing',
  },
  {
    name: 'subcategory',
    type: 'Nullable(String)',
    from: 'ledger',
    shown: 'list',
    comment: 'Category within the main category',
    description: 'A narrower category within `category`; null if there is none.',
    example: 'Art Books',
  },
  {
    name: 'location',
    type: 'Nullable(String)',
    from: 'ledger',
    shown: 'list',
    comment: 'Free text place',
    description: 'A place, as free text; null if there is none.',
    example: 'Porto, Portugal',
  },
  {
    name: 'image_url',
    type: 'Nullable(String)',
    from: 'ledger',
    shown: 'list',
    format: 'uri',
    comment: 'Web address of the main picture',
    description: 'The web address of the main picture; null if there is none.',
    example: 'https://crowdfunding.example/images/the-lighthouse-atlas.jpg',
  },
  {
    name: 'currency',
    type: 'LowCardinality(String)',
    from: 'ledger',
    shown: 'list',
    isExampleShown: true,
    comment: 'ISO 4217 code of goal, pledged and the rewards',
    description: 'The ISO 4217 code of all amounts of this campaign.',
    example: 'EUR',
  },
  {
    name: 'goal_amount',
    type: 'Decimal(38, 4)',
    from: 'fold',
    shown: 'list',
    float: 'goal',
    comment: 'Goal, in major units of currency',
    description: 'The funding goal, in major units of `currency`.',
    example: 12000,
  },
  {
    name: 'pledged_amount',
    type: 'Decimal(38, 4)',
    from: 'fold',
    shown: 'list',
    float: 'pledged',
    comment: 'Sum of the pledges that count, in major units of currency',
    description: 'The sum of all valid pledges, in major units of `currency`.',
    example: 15480.5,
  },
  {
    name: 'pledged_platform_amount',
    type: 'Decimal(38, 4)',
    from: 'fold',
    shown: 'sql',
    float: 'pledged_platform',
    comment: 'The same sum in major units of the platform currency',
  },
  {
    name: 'percent_funded',
    type: 'Decimal(38, 2)',
    from: 'fold',
    shown: 'list',
    float: 'percent',
    comment:
      '100 * pledged_amount / goal_amount, percent, rounded half up to two decimals; 0 when the goal is 0',
    description:
      '100 * pledged_amount / goal_amount, with two decimals. Above 100 if overfunded; 0 if the goal is 0.',
    example: 129,
  },
  {
    name: 'backer_count',
    type: 'UInt64',
    from: 'fold',
    shown: 'list',
    comment:
      'Distinct backers with a pledge that counts; a sum over campaigns counts a person once for each of them',
    description: 'The number of distinct backers with a valid pledge.',
    example: 412,
  },
  {
    name: 'pledge_count',
    type: 'UInt64',
    from: 'fold',
    shown: 'sql',
    comment: 'Number of pledges that count',
  },
  {
    name: 'follower_count',
    type: 'UInt64',
    from: 'fold',
    shown: 'list',
    comment: 'Number of followers',
    description: 'The number of people who follow the campaign.',
    example: 1630,
  },
  {
    name: 'status',
    type: 'LowCardinality(String)',
    from: 'ledger',
    shown: 'list',
    values: publicStatuses,
    comment: 'LIVE, FUNDED, FAILED or CANCELLED',
    description:
      'LIVE: it runs. FUNDED: it ended and reached its goal. FAILED: it ended without. CANCELLED: its creator ended it. A campaign with any other status is not public.',
    example: 'LIVE',
  },
  {
    name: 'campaign_type',
    type: 'LowCardinality(String)',
    from: 'ledger',
    shown: 'list',
    isExampleShown: true,
    comment: 'For example ALL_OR_NOTHING',
    description: 'How the campaign is funded. The platform may add values.',
    example: 'ALL_OR_NOTHING',
  },
  {
    name: 'project_type',
    type: 'LowCardinality(String)',
    from: 'ledger',
    shown: 'list',
    isExampleShown: true,
    comment: 'For example COMIC',
    description: 'What kind of project it is. The platform may add values.',
    example: 'COMIC',
  },
  {
    name: 'is_staff_pick',
    type: 'Bool',
    from: 'ledger',
    shown: 'list',
    comment: "Picked by the platform's staff",
    description: "Whether the platform's staff recommend it.",
    example: true,
  },
  {
    name: 'has_adult_content',
    type: 'Bool',
    from: 'ledger',
    shown: 'list',
    comment: 'Marked as adult content',
    description: 'Whether it is marked as adult content.',
    example: false,
  },
  {
    name: 'uses_ai',
    type: 'Bool',
    from: 'ledger',
    shown: 'list',
    comment: 'Declared to use generative AI',
    description: 'Whether the creator declared the use of generative AI.',
    example: false,
  },
  {
    name: 'tags',
    type: 'Array(String)',
    from: 'ledger',
    shown: 'list',
    comment: 'Tags',
    description: 'Free labels; empty if there are none.',
    example: ['maps', 'illustration'],
  },
  {
    name: 'launch_date',
    type: `Nullable(${timestamp})`,
    from: 'ledger',
    shown: 'list',
    comment: 'Launch, UTC',
    description: 'When the campaign began; null if that is not known.',
    example: '2026-03-01T09:00:00.000Z',
  },
  {
    name: 'end_date',
    type: `Nullable(${timestamp})`,
    from: 'ledger',
    shown: 'list',
    comment: 'End of the campaign, UTC',
    description: 'When the campaign ends or ended; null if that is not known.',
    example: '2026-03-31T09:00:00.000Z',
  },
  {
    name: 'created_at',
    type: timestamp,
    from: 'ledger',
    shown: 'list',
    comment: 'Creation of the campaign, UTC',
    description: 'When the campaign was created.',
    example: '2026-01-14T16:20:05.250Z',
  },
  {
    name: 'creator_name',
    type: 'String',
    from: 'ledger',
    shown: 'list',
    api: 'creator.name',
    event: 'creator.name',
    comment: 'Public name of the creator',
    description: 'The public name.',
    example: 'Studio Farol',
  },
  {
    name: 'creator_profile_url',
    type: 'String',
    from: 'ledger',
    shown: 'list',
    api: 'creator.profile_url',
    event: 'creator.profile_url',
    format: 'uri',
    comment: 'Public profile of the creator',
    description: "The creator's page on the platform.",
    example: 'https://crowdfunding.example/creators/studio-farol',
  },
  {
    name: 'creator_avatar_url',
    type: 'Nullable(String)',
    from: 'ledger',
    shown: 'list',
    api: 'creator.avatar_url',
    event: 'creator.avatar_url',
    format: 'uri',
    comment: "Web address of the creator's picture",
    description: "The web address of the creator's picture; null if there is none.",
    example: null,
  },
  {
    name: 'description',
    type: 'String',
    from: 'ledger',
    shown: 'detail',
    comment: 'Full description',
    description: "The campaign's full description, as the creator wrote it.",
    example: 'We have spent four years drawing every lighthouse between Bergen and Cadiz.',
  },
  {
    name: 'risks',
    type: 'String',
    from: 'ledger',
    shown: 'detail',
    comment: 'Risks statement',
    description: 'What the creator says about risks and challenges.',
    example: 'Printing may take longer than planned; the drawings are finished.',
  },
  {
    name: 'rewards',
    type: `Array(${reward})`,
    from: 'fold',
    shown: 'detail',
    comment:
      "Reward tiers in the campaign's order, amount in major units of currency; one row each in the view rewards",
    description: "The reward tiers in the campaign's order; empty if there are none.",
  },
] as const satisfies readonly CampaignColumn[]

/** The same list, without the types of single fields. */
export const columns: readonly CampaignColumn[] = campaignColumns

/** What `content_hash` covers, in this order. */
export const contentColumns: readonly string[] = columns.map(({ name }) => name)

const ledgerOnly = [
  { name: 'version', type: 'UInt64' },
  { name: 'is_public', type: 'Bool' },
  { name: 'currency_digits', type: 'UInt8' },
  { name: 'goal_amount_minor', type: 'Int64' },
  { name: 'follower_count', type: 'Int64' },
  { name: 'creator_id', type: 'String', event: 'creator.creator_id' },
  {
    name: 'rewards',
    type: 'Array(Tuple(reward_id String, title String, description String, amount_minor Int64, quantity_available Nullable(Int64)))',
  },
] as const

const copied = columns.filter(({ from }) => from === 'ledger')

/** What the fold copies from the ledger as it is. */
export const copiedColumns: readonly string[] = copied.map(({ name }) => name)

/** A campaign's row in the ledger. `event`: the path in the event; none for what is not there as it is. */
export const ledgerColumns: readonly { name: string; type: string; event?: string; default?: unknown }[] = [
  ...copied.map(column => ({ event: column.name, ...column })),
  ...ledgerOnly,
]

type Column = (typeof campaignColumns)[number]
type Added = Extract<Column, { default: unknown }>

/** One object instead of an intersection. */
export type Flat<T> = { [K in keyof T]: T[K] }

/** Columns of rows, with the types that ClickHouse's JSON gives them. One that was added later may be missing. */
type Rows<C extends Column> = Flat<
  { [R in Exclude<C, Added> as R['name']]: JsonOf<R> } & { [R in Extract<C, Added> as R['name']]?: JsonOf<R> }
>

/** The columns that the API shows in this place. */
export type ShownColumns<Shown extends CampaignColumn['shown']> = Rows<Extract<Column, { shown: Shown }>>

type ApiName<C extends Column> = C extends { api: infer Name extends string } ? Name : C['name']
type InCreator = Extract<Column, { api: `creator.${string}` }>

/** The fields that the API shows in this place, with their names there, but for those of the creator. */
export type ShownFields<Shown extends CampaignColumn['shown']> = {
  [C in Exclude<Extract<Column, { shown: Shown }>, InCreator> as ApiName<C>]: JsonOf<C>
}

/** The public fields of a creator. */
export type CreatorFields = {
  [C in InCreator as C['api'] extends `creator.${infer Name}` ? Name : never]: JsonOf<C>
}

type Copied = Exclude<
  Extract<Column, { from: 'ledger' }>,
  { event: string } | { name: 'status' | 'campaign_id' }
>

/** The fields of an event that the ledger has under the same name. A timestamp is Unix milliseconds. */
export type CopiedFields = Flat<
  { [C in Exclude<Copied, Added> as C['name']]: EventOf<C> } & {
    [C in Extract<Copied, Added> as C['name']]?: EventOf<C>
  }
>

type EventOf<C extends Column> = C['type'] extends `${string}DateTime64${string}`
  ? number | (C['type'] extends `Nullable${string}` ? null : never)
  : JsonOf<C>

/** 64-bit integers and decimals are numbers, timestamps are text (services/tables/port.ts). */
type JsonOf<C extends Column> = C extends { values: readonly (infer Value)[] } ? Value : JsonOfType<C['type']>

type JsonOfType<Type extends string> = Type extends `Nullable(${infer Inner})`
  ? JsonOfType<Inner> | null
  : Type extends `LowCardinality(${infer Inner})`
    ? JsonOfType<Inner>
    : Type extends 'String' | `DateTime64(${string})`
      ? string
      : Type extends 'Bool'
        ? boolean
        : Type extends 'Array(String)'
          ? string[]
          : Type extends `UInt${string}` | `Decimal(${string})`
            ? number
            : unknown
