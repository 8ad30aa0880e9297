/**
 * What the first page and the page for data teams read from the views. Anyone may open these pages, so a reading is kept for a
 * while, however many people ask, and none waits for longer than its bound. What fails is missing, or shown as unavailable.
 */
import { kept } from '../../runtime/async/kept.ts'
import { within } from '../../runtime/async/sleep.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { readSql } from '../../tables/sql-text.ts'
import { type Place, readRows } from '../reading.ts'
import { readExamples } from './data-examples.ts'

/** What the first page says of the data. */
export interface LiveState {
  status: 'Up to date' | 'Behind' | 'Unavailable'
  campaigns: number | undefined
  /**
   * The watermark, Unix ms: every change that was processed by this moment can be read. It does not know what waits in the log. Undefined
   * before the first fold, too.
   */
  as_of: number | undefined
}

/** The first rows of the answer to each question, by the name of its example. One that is not known at the moment is missing. */
export type Answers = ReadonlyMap<string, readonly Readonly<Record<string, unknown>>[]>

/** A part that cannot be read at the moment is undefined. */
export interface DataPictures {
  about?: DataAbout | undefined
  /** The money that came on each of the last days, oldest first. `raised` may be below 0: pledges are withdrawn, too. */
  funding?: readonly FundingDay[] | undefined
  categories?: readonly CategorySuccess[] | undefined
  campaigns?: readonly TopCampaign[] | undefined
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

export interface FundingDay {
  day: string
  raised: number
  pledges: number
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

/** How long a reading is kept, ms. */
const liveMs = 10_000
const picturesMs = 60_000
/** For a reading without any campaign: a new platform is just being loaded. */
const emptyKeptMs = 2_000
/** There are many questions, and anyone may open the page. */
const answersMs = 300_000
/** One more than are shown. */
export const answerRowsMax = 11
/** How long a page waits. Then it shows the last pictures. */
const liveMsMax = 3_000
const picturesMsMax = 4_000
const answersMsMax = 2_000
/** A watermark that is this old means that changes take longer than they should, ms. */
const behindMs = 120_000

const sql = {
  live: readSql('live', import.meta.url),
  about: readSql('about', import.meta.url),
  byDay: readSql('funding-by-day', import.meta.url),
  categories: readSql('success-by-category', import.meta.url),
  campaigns: readSql('top-campaigns', import.meta.url),
}

type Reading = [place: Place, runtime: Pick<Runtime, 'monotonicMs' | 'logger'>]

/** A function that never rejects. After a failed reading the last one is not shown as the present. */
export function createLiveState(...[place, runtime]: Reading): () => Promise<LiveState> {
  async function read(): Promise<LiveState> {
    type Row = { campaigns: number; as_of: number; read_at: number }
    const [row] = await readRows<Row>(place, sql.live, {}, liveMsMax)
    if (row === undefined) throw new Error('the tables gave no row')
    const isBehind = row.read_at - row.as_of > behindMs
    const status = isBehind ? 'Behind' : 'Up to date'
    return { status, campaigns: row.campaigns, as_of: row.as_of || undefined }
  }

  function unavailable(error: unknown): LiveState {
    runtime.logger.warn(`the live state of the first page cannot be read: ${messageOf(error)}`)
    return { status: 'Unavailable', campaigns: undefined, as_of: undefined }
  }

  return kept(() => read().catch(unavailable), { ms: liveMs }, runtime)
}

/** A function that never rejects. */
export function createDataPictures(...[place, runtime]: Reading): () => Promise<DataPictures> {
  let last: DataPictures = {}
  const read = reader(place, runtime)

  /** One statement after the other. */
  async function readAll(): Promise<DataPictures> {
    last = {
      about: (await read<DataAbout>(sql.about, 'the view about'))?.[0],
      funding: await read<FundingDay>(sql.byDay, 'funding by day'),
      categories: await read<CategorySuccess>(sql.categories, 'success by category'),
      campaigns: await read<TopCampaign>(sql.campaigns, 'the top campaigns'),
    }
    return last
  }

  const ms = ({ about }: DataPictures) => (about?.campaigns === 0 ? emptyKeptMs : picturesMs)
  const load = kept(readAll, { ms }, runtime)
  return () => within(picturesMsMax, load()).catch(() => last)
}

/** A function that never rejects. An answer is there as soon as it is known. */
export function createDataAnswers(...[place, runtime]: Reading): () => Promise<Answers> {
  const examples = readExamples(place.databases.views)
  const answers = new Map<string, readonly Record<string, unknown>[]>()
  const read = reader(place, runtime)

  /** Returns whether there is anything at all. */
  async function answerAll(): Promise<boolean> {
    for (const { name, sql } of examples) {
      const bounds = `SETTINGS limit = ${answerRowsMax}, max_threads = 2`
      const rows = await read<Record<string, unknown>>(`${sql}\n${bounds}`, `the answer to ${name}`)
      if (rows) answers.set(name, rows)
      else answers.delete(name)
    }
    return [...answers.values()].some(rows => rows.length > 0)
  }

  const load = kept(answerAll, { ms: isAny => (isAny ? answersMs : emptyKeptMs) }, runtime)
  return async () => {
    await within(answersMsMax, load()).catch(() => undefined)
    return answers
  }
}

/** A read that fails gives undefined. */
function reader(...[place, runtime]: Reading) {
  return async <Row>(query: string, what: string): Promise<Row[] | undefined> => {
    return readRows<Row>(place, query).catch((error: unknown) => {
      runtime.logger.warn(`${what} cannot be read for the page of data teams: ${messageOf(error)}`)
      return undefined
    })
  }
}
