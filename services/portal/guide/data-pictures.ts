/**
 * Reads what the page for data teams draws, from the views.
 *
 * Anyone may open that page, so a reading is kept for a minute, and one statement runs at a time, however many people ask.
 * After that minute the next reader gets the last reading at once, and a new one begins. If the last one is too old, the page
 * waits for the new one, but never for longer than `waitMsMax`. What fails is missing, and is tried again after the minute.
 */
import { messageOf } from '../../runtime/message-of.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import type {
  CategorySuccess,
  DataAbout,
  DataPictures,
  DataPicturesReader,
  FundingPicture,
  TopCampaign,
} from '../ports.ts'

export interface DataPicturesDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** Unix milliseconds. */
  now: () => number
  warn?: (message: string) => void
}

/** How long a reading is kept, ms. */
const keptMs = 60_000
/** Beyond this a reading is not shown any more, ms. */
const shownMsMax = 900_000
/** Both, for a reading without any campaign, ms: a new platform is just being loaded. */
const emptyMsMax = 2_000
/** How long a page waits, ms. */
const waitMsMax = 4_000
/** Each statement has a bound of 10 s of its own (sql/). */
const statementMsMax = 12_000

const aboutSql = readSql('about', import.meta.url)
const fundingByDaySql = readSql('funding-by-day', import.meta.url)
const fundingByMonthSql = readSql('funding-by-month', import.meta.url)
const successSql = readSql('success-by-category', import.meta.url)
const topSql = readSql('top-campaigns', import.meta.url)

const nothing: DataPictures = {
  about: undefined,
  funding: undefined,
  categories: undefined,
  campaigns: undefined,
}

export function createDataPicturesReader(dependencies: DataPicturesDependencies): DataPicturesReader {
  const { now } = dependencies
  let kept: { pictures: DataPictures; readAt: number } | undefined
  let running: Promise<void> | undefined
  const age = (): number => (kept ? now() - kept.readAt : Number.POSITIVE_INFINITY)
  /** Whether the last reading is younger than this. */
  const isYounger = (ms: number): boolean =>
    age() < (kept?.pictures.about?.campaigns === 0 ? Math.min(ms, emptyMsMax) : ms)

  return {
    async read() {
      if (!isYounger(keptMs)) {
        running ??= readAll(dependencies).then(pictures => {
          kept = { pictures, readAt: now() }
          running = undefined
        })
      }
      if (running && !isYounger(shownMsMax)) await within(waitMsMax, running)
      return kept && isYounger(shownMsMax) ? kept.pictures : nothing
    },
  }
}

/** One statement after the other. Never rejects. */
async function readAll(dependencies: DataPicturesDependencies): Promise<DataPictures> {
  const { tables, databases, warn = () => {} } = dependencies

  async function read<Row>(sql: string, what: string): Promise<Row[] | undefined> {
    const signal = AbortSignal.timeout(statementMsMax)
    try {
      return await Promise.race([
        tables.rows<Row>({ query: nameDatabases(sql, databases) }, { signal }),
        rejectOn(signal),
      ])
    } catch (error) {
      warn(`${what} cannot be read for the page of data teams: ${messageOf(error)}`)
      return undefined
    }
  }

  const about = (await read<DataAbout>(aboutSql, 'the view about'))?.[0]
  const days = await read<FundingPicture['points'][number]>(fundingByDaySql, 'funding by day')
  // The day on which the history began shows what came since then, and is not a whole day.
  const hasDays = days !== undefined && days.length > 2
  const months = hasDays
    ? undefined
    : await read<FundingPicture['points'][number]>(fundingByMonthSql, 'funding by month')
  return {
    about,
    funding: hasDays ? { per: 'day', points: days } : months && { per: 'month', points: months },
    categories: await read<CategorySuccess>(successSql, 'success by category'),
    campaigns: await read<TopCampaign>(topSql, 'the top campaigns'),
  }
}

/** Resolves when the work is done, or after `ms`. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
