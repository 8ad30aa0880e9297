/**
 * Reads what the page for data teams draws, from the views.
 *
 * Anyone may open that page, so a reading is kept for a minute, and one statement runs at a time, however many people ask. A page
 * waits for a new reading, but not for long: then it shows the last one. What fails is missing, and is tried again after the minute.
 */
import { kept } from '../../runtime/kept.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { within } from '../../runtime/within.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'

/** A part that cannot be read at the moment is undefined. */
export interface DataPictures {
  about: DataAbout | undefined
  funding: FundingPicture | undefined
  categories: readonly CategorySuccess[] | undefined
  campaigns: readonly TopCampaign[] | undefined
}

export interface DataAbout {
  /** ISO 4217 code of all amounts. */
  currency: string
  campaigns: number
  /** The watermark, Unix ms. */
  as_of: number
  /** The first day of the history, `2026-11-22`; empty if there is none yet. */
  history_from: string
  /** The first day that was kept. The days before it are derived. */
  history_kept_from: string
}

export interface FundingPicture {
  /** `day`: the money that came on each day. `month`: what campaigns raised, by the month of their launch. */
  per: 'day' | 'month'
  /** Oldest first. `day` is the first day of a month. `raised` may be below 0: pledges are withdrawn, too. */
  points: readonly { day: string; raised: number; pledges: number }[]
}

export interface CategorySuccess {
  category: string
  ended: number
  funded: number
}

export interface TopCampaign {
  title: string
  url: string
  category: string
  status: string
  raised: number
  backers: number
}

const keptMs = 60_000
/** For a reading without any campaign: a new platform is just being loaded. */
const emptyKeptMs = 2_000
/** How long a page waits. */
const waitMsMax = 4_000
/** Each statement has a bound of 10 s of its own (sql/). */
const statementMsMax = 12_000

const sql = {
  about: readSql('about', import.meta.url),
  byDay: readSql('funding-by-day', import.meta.url),
  byMonth: readSql('funding-by-month', import.meta.url),
  categories: readSql('success-by-category', import.meta.url),
  campaigns: readSql('top-campaigns', import.meta.url),
}

/** A function that never rejects. */
export function createDataPictures(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  runtime: Pick<Runtime, 'monotonicMs' | 'logger'>,
): () => Promise<DataPictures> {
  let last: DataPictures = {
    about: undefined,
    funding: undefined,
    categories: undefined,
    campaigns: undefined,
  }

  async function read<Row>(query: string, what: string): Promise<Row[] | undefined> {
    const signal = AbortSignal.timeout(statementMsMax)
    const rows = tables.rows<Row>({ query: nameDatabases(query, databases) }, { signal })
    return within(statementMsMax, rows).catch((error: unknown) => {
      runtime.logger.warn(`${what} cannot be read for the page of data teams: ${messageOf(error)}`)
      return undefined
    })
  }

  /** One statement after the other. */
  async function readAll(): Promise<DataPictures> {
    const about = (await read<DataAbout>(sql.about, 'the view about'))?.[0]
    const days = await read<FundingPicture['points'][number]>(sql.byDay, 'funding by day')
    // Without derived days, the first day shows what came since the start, and is not a whole day.
    const hasDays = days !== undefined && days.length > 2
    const months = hasDays ? undefined : await read<(typeof days & {})[0]>(sql.byMonth, 'funding by month')
    last = {
      about,
      funding: hasDays ? { per: 'day', points: days } : months && { per: 'month', points: months },
      categories: await read<CategorySuccess>(sql.categories, 'success by category'),
      campaigns: await read<TopCampaign>(sql.campaigns, 'the top campaigns'),
    }
    return last
  }

  const ms = ({ about }: DataPictures) => (about?.campaigns === 0 ? emptyKeptMs : keptMs)
  const load = kept(readAll, { ms }, runtime)
  return () => within(waitMsMax, load()).catch(() => last)
}
