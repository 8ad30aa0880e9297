/** `GET /stats`: statistics of the public campaigns of the platform. */
import { z } from 'zod'
import { amount, count, timestamp, timestampForm } from '../../../contracts/api/schemas.ts'
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import { timeBound } from '../../tables/clickhouse/statements.ts'
import type { Databases, Statement } from '../../tables/port.ts'
import { presentTimestamp } from '../campaigns/campaign-fields.ts'
import type { Endpoint } from './endpoint.ts'

const statsSchema = z
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

export type Stats = z.infer<typeof statsSchema>

export const statsBodySchema = z
  .object({ data: statsSchema })
  .meta({ id: 'StatsBody', description: 'The statistics of the platform.' })

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

/** From this number of pledges on, the statistics are kept ahead: they take about 0.1 s and more. */
export const aheadPledgesMin = 1_000_000

export const stats: Endpoint = {
  path: '/stats',
  operationId: 'getStats',
  tag: 'Platform',
  summary: 'Show the statistics of the platform',
  parameters: {},
  answer: 'The statistics.',
  schema: statsBodySchema,
  example: { data: statsExample },
  failures: [],
  cacheMs: ({ PLEDGEVIEW_STATS_CACHE_MS: ms }) => ms,

  read: () => ({
    key: 'stats',
    parameters: null,
    async load({ tables, databases, options }) {
      const { PLEDGEVIEW_PLATFORM_CURRENCY: currency, PLEDGEVIEW_QUERY_MS_MAX: msMax, threadsMax } = options
      const [row] = await tables.rows<StatsRow>(statsStatement(databases, msMax, threadsMax))
      if (row === undefined) throw new Error('the statistics statement returned no row')
      return { body: { data: presentStats(row, currency) }, isSlow: row.total_pledges >= aheadPledgesMin }
    },
  }),
}

// Nearly all pledges are of public campaigns: looking for granules without any costs more than it saves.
const readAllPledges = 'use_index_for_in_with_subqueries = 0'

/**
 * The statistics of the platform: one row of type `StatsRow`. All sums come from one read of the campaigns that lists show, so totals
 * and categories agree even if the fold changes them meanwhile, and with the lists after a promotion.
 *
 * Backers and creators are counted by another read, of a view that follows a promotion a moment later, and backers in the ledger, which is
 * ahead of the fold (contracts/tables/views/0001-views.sql). That read uses the sums, so it comes after them. In the other order, a pledge that
 * is folded between the two reads would be in the sum of pledges without its backer. They are never more than the pledges and the
 * campaigns. `threadsMax`: default as many as ClickHouse takes.
 */
export function statsStatement(databases: Databases, msMax: number, threadsMax?: number): Statement {
  return {
    query: `WITH
    (
        SELECT (
            sum(pledges), sum(projects), sum(pledged), sum(live), sum(funded), sum(failed), sum(cancelled),
            groupArray(category), groupArray(projects)
        )
        FROM (
            SELECT
                category,
                count() AS projects,
                countIf(status = 'LIVE') AS live,
                countIf(status = 'FUNDED') AS funded,
                countIf(status = 'FAILED') AS failed,
                countIf(status = 'CANCELLED') AS cancelled,
                sum(pledge_count) AS pledges,
                sum(pledged_platform_amount) AS pledged
            FROM ${databases.read}.campaign_pages
            GROUP BY category
            ORDER BY projects DESC, category
        )
    ) AS sums,
    (
        SELECT (least(total_backers, sums.1), least(total_creators, sums.2))
        FROM ${databases.views}.platform_totals
    ) AS people
SELECT
    sums.1 AS total_pledges,
    people.1 AS total_backers,
    people.2 AS total_creators,
    sums.2 AS projects_total,
    sums.3 AS total_raised,
    sums.4 AS projects_live,
    sums.5 AS projects_funded,
    sums.6 AS projects_failed,
    sums.7 AS projects_cancelled,
    sums.8 AS categories,
    sums.9 AS category_projects,
    now64(3, 'UTC') AS generated_at
SETTINGS ${threadsMax === undefined ? '' : `max_threads = ${threadsMax}, `}${readAllPledges}, ${timeBound(msMax)}`,
  }
}

export interface StatsRow extends Omit<Stats, 'currency' | 'success_rate' | 'average_pledge' | 'categories'> {
  projects_failed: number
  projects_cancelled: number
  categories: string[]
  /** The number of projects of the category with the same index. */
  category_projects: number[]
}

/**
 * The statistics of the platform. `currency` is the platform's currency. A ratio is 0 if its divisor is 0. The average
 * has the digits of the currency, and the rate has two.
 */
export function presentStats(row: StatsRow, currency: string): Stats {
  const { projects_failed, projects_cancelled, categories, category_projects, ...shown } = row
  const ended = row.projects_funded + projects_failed + projects_cancelled
  return {
    currency,
    ...shown,
    success_rate: roundedQuotient(100 * row.projects_funded, ended, 2),
    average_pledge: roundedQuotient(row.total_raised, row.total_pledges, currencyDigits(currency) ?? 2),
    categories: categories.map((category, index) => ({
      category,
      project_count: category_projects[index] ?? 0,
    })),
    generated_at: presentTimestamp(row.generated_at),
  }
}

// Amounts have at most four decimals: no currency has a smaller unit.
const amountDigits = 4
const amountUnits = 10n ** BigInt(amountDigits)

/**
 * `dividend / divisor`, rounded half up to this many decimals; 0 if the divisor is 0. The dividend is not negative and
 * has at most four decimals. The divisor is a whole number. It computes with integers, because a quotient of two
 * binary fractions has noise in its last digits and may be rounded to the wrong side.
 */
function roundedQuotient(dividend: number, divisor: number, digits: number): number {
  if (divisor === 0) return 0
  const divided = inAmountUnits(dividend) * 10n ** BigInt(digits)
  const by = BigInt(divisor) * amountUnits
  const rounded = (2n * divided + by) / (2n * by)
  // A decimal text becomes the nearest number, which JSON writes as the same text.
  return Number(`${rounded}e-${digits}`)
}

/** The amount in ten-thousandths. The shortest text of a number has the decimals that were meant. */
function inAmountUnits(amount: number): bigint {
  // A number of this size is whole.
  if (amount > Number.MAX_SAFE_INTEGER) return BigInt(amount) * amountUnits
  // Not toFixed(): it writes the binary fraction, so 568964654693.07 becomes 568964654693.0699.
  const [whole = '', decimals = ''] = String(amount).split('.')
  return BigInt(whole + decimals.padEnd(amountDigits, '0'))
}
