/**
 * The content of a campaign: every column that a reader can see, in the order of the view `campaigns`.
 *
 * The fold's statement, the comparison of a rebuild, the query service's statements and the types of their rows come from
 * this list. The SQL files beside it define the tables. A new column needs a migration and a line here;
 * test/integration/tables/campaign-columns.test.ts fails if the two differ. Names and order are part of `content_hash`:
 * after a change of this list every campaign that is folded gets a new `updated_at`.
 */

/**
 * - `type`: in the read table and the view.
 * - `from`: `ledger` if the fold copies the ledger's column of the same name and type, `fold` if fold-campaigns.sql computes it.
 * - `shown`: the API shows the column in lists and details, in details only, or not at all (`sql`: only data teams see it).
 */
interface CampaignColumn {
  name: string
  type: string
  from: 'ledger' | 'fold'
  shown: 'list' | 'detail' | 'sql'
}

const timestamp = "DateTime64(3, 'UTC')"
const reward =
  'Tuple(reward_id String, title String, description String, amount Decimal(38, 4), quantity_available Nullable(UInt64), quantity_claimed UInt64, quantity_remaining Nullable(UInt64))'

export const campaignColumns = [
  { name: 'campaign_id', type: 'String', from: 'ledger', shown: 'list' },
  { name: 'slug', type: 'String', from: 'ledger', shown: 'list' },
  { name: 'url', type: 'String', from: 'ledger', shown: 'list' },
  { name: 'title', type: 'String', from: 'ledger', shown: 'list' },
  { name: 'subtitle', type: 'Nullable(String)', from: 'ledger', shown: 'list' },
  { name: 'category', type: 'LowCardinality(String)', from: 'ledger', shown: 'list' },
  { name: 'subcategory', type: 'Nullable(String)', from: 'ledger', shown: 'list' },
  { name: 'location', type: 'Nullable(String)', from: 'ledger', shown: 'list' },
  { name: 'image_url', type: 'Nullable(String)', from: 'ledger', shown: 'list' },
  { name: 'currency', type: 'LowCardinality(String)', from: 'ledger', shown: 'list' },
  { name: 'goal_amount', type: 'Decimal(38, 4)', from: 'fold', shown: 'list' },
  { name: 'pledged_amount', type: 'Decimal(38, 4)', from: 'fold', shown: 'list' },
  { name: 'pledged_platform_amount', type: 'Decimal(38, 4)', from: 'fold', shown: 'sql' },
  { name: 'percent_funded', type: 'Decimal(38, 2)', from: 'fold', shown: 'list' },
  { name: 'backer_count', type: 'UInt64', from: 'fold', shown: 'list' },
  { name: 'pledge_count', type: 'UInt64', from: 'fold', shown: 'sql' },
  { name: 'follower_count', type: 'UInt64', from: 'fold', shown: 'list' },
  { name: 'status', type: 'LowCardinality(String)', from: 'ledger', shown: 'list' },
  { name: 'campaign_type', type: 'LowCardinality(String)', from: 'ledger', shown: 'list' },
  { name: 'project_type', type: 'LowCardinality(String)', from: 'ledger', shown: 'list' },
  { name: 'is_staff_pick', type: 'Bool', from: 'ledger', shown: 'list' },
  { name: 'has_adult_content', type: 'Bool', from: 'ledger', shown: 'list' },
  { name: 'uses_ai', type: 'Bool', from: 'ledger', shown: 'list' },
  { name: 'tags', type: 'Array(String)', from: 'ledger', shown: 'list' },
  { name: 'launch_date', type: `Nullable(${timestamp})`, from: 'ledger', shown: 'list' },
  { name: 'end_date', type: `Nullable(${timestamp})`, from: 'ledger', shown: 'list' },
  { name: 'created_at', type: timestamp, from: 'ledger', shown: 'list' },
  { name: 'creator_name', type: 'String', from: 'ledger', shown: 'list' },
  { name: 'creator_profile_url', type: 'String', from: 'ledger', shown: 'list' },
  { name: 'creator_avatar_url', type: 'Nullable(String)', from: 'ledger', shown: 'list' },
  { name: 'description', type: 'String', from: 'ledger', shown: 'detail' },
  { name: 'risks', type: 'String', from: 'ledger', shown: 'detail' },
  { name: 'rewards', type: `Array(${reward})`, from: 'fold', shown: 'detail' },
] as const satisfies readonly CampaignColumn[]

/** What `content_hash` covers, in this order. */
export const contentColumns: readonly string[] = campaignColumns.map(({ name }) => name)

/** What the fold copies from the ledger as it is. */
export const copiedColumns: readonly string[] = campaignColumns
  .filter(({ from }) => from === 'ledger')
  .map(({ name }) => name)

/** What the API reads for a list. */
export const listColumns: readonly string[] = namesShown('list')

/** What the API reads for a detail, besides the list's columns. */
export const detailColumns: readonly string[] = namesShown('detail')

function namesShown(where: CampaignColumn['shown']): string[] {
  return campaignColumns.filter(({ shown }) => shown === where).map(({ name }) => name)
}

type Column = (typeof campaignColumns)[number]

/** The columns that the API shows in this place, with the types that ClickHouse's JSON gives them. */
export type ShownColumns<Shown extends CampaignColumn['shown']> = {
  [C in Extract<Column, { shown: Shown }> as C['name']]: JsonOf<C['type']>
}

/** 64-bit integers and decimals are numbers, timestamps are text (services/shared/tables/port.ts). */
type JsonOf<Type extends string> = Type extends `Nullable(${infer Inner})`
  ? JsonOf<Inner> | null
  : Type extends `LowCardinality(${infer Inner})`
    ? JsonOf<Inner>
    : Type extends 'String' | `DateTime64(${string})`
      ? string
      : Type extends 'Bool'
        ? boolean
        : Type extends 'Array(String)'
          ? string[]
          : Type extends `UInt${string}` | `Decimal(${string})`
            ? number
            : unknown
