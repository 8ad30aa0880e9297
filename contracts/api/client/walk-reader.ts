/** The pages of one walk: read within a bound, and what they say together. */
import { limitMax } from '../parameters.ts'
import { ClientError } from './errors.ts'
import type { Page } from './pages.ts'

export interface PageRange {
  offset: number
  limit: number
  /** Unix milliseconds, inclusive; null: whenever changed. */
  updatedSince: number | null
}

export interface WalkDependencies {
  /** Reads a page of the list, newest first; all with the same filter. */
  readPage(range: PageRange): Promise<Page>
  pageSize: number
}

/** What all pages of a walk say together. Times are Unix milliseconds. */
export interface WalkEnd {
  /** The watermark: what changed after it is found by the next walk, whose `updatedSince` it is. */
  asOf: number
  /** Whether all pages came from one snapshot. */
  isOneSnapshot: boolean
  /** No page's snapshot was taken before this moment, by the client's clock. */
  takenAt: number
  /** Until when the same walk would bring the same, by the client's clock. */
  freshUntil: number
}

export interface WalkReader {
  /** The page of the walk at this offset. */
  pageAt(offset: number): Promise<Page>
  /**
   * The ids of all that changed from `asOf` on, by one snapshot that is no older than any page of the walk so far.
   * Undefined where there is no telling: too many, or snapshots that change too fast.
   */
  changesSince(asOf: number): Promise<ReadonlySet<string> | undefined>
  /** The earliest and the latest `X-Data-As-Of` of the pages so far. */
  span(): { earliest: number; latest: number }
  end(): WalkEnd
}

const sparePages = 100
const pagesReadPerPage = 4
// Asking for the changes pays only while they are few against the list.
const changesMax = 5000
const changesTriesMax = 3

/** Every method but `span` and `end` rejects with `unstable_walk` where the bound on the pages is reached. */
export function createWalkReader(
  { readPage, pageSize }: WalkDependencies,
  updatedSince: number | null,
): WalkReader {
  let pagesRead = 0
  let pagesMax = sparePages
  let earliest = Infinity
  let latest = -Infinity
  let takenAt = Infinity
  let freshUntil = Infinity

  async function read(range: PageRange): Promise<Page> {
    if (++pagesRead > pagesMax) {
      const message = `the pages still moved after ${pagesMax} had been read`
      throw new ClientError({ code: 'unstable_walk', message })
    }
    return readPage(range)
  }

  async function idsInOneSnapshot(since: number): Promise<ReadonlySet<string> | 'moved' | 'too many'> {
    const ids = new Set<string>()
    let asOf: number | undefined
    for (let offset = 0; ; offset += limitMax) {
      const page = await read({ offset, limit: limitMax, updatedSince: since })
      asOf ??= page.asOf
      if (page.asOf !== asOf || asOf < latest) return 'moved'
      if (page.total > changesMax) return 'too many'
      for (const { id } of page.projects) ids.add(id)
      if (!page.hasMore) return ids
    }
  }

  return {
    async pageAt(offset) {
      const page = await read({ offset, limit: pageSize, updatedSince })
      pagesMax = Math.max(pagesMax, sparePages + pagesReadPerPage * Math.ceil(page.total / pageSize))
      earliest = Math.min(earliest, page.asOf)
      latest = Math.max(latest, page.asOf)
      takenAt = Math.min(takenAt, page.takenAt)
      freshUntil = Math.min(freshUntil, page.freshUntil)
      return page
    },

    async changesSince(asOf) {
      for (let tries = 0; tries < changesTriesMax; tries++) {
        // A moment earlier is a query of its own, of which no older answer is kept.
        const ids = await idsInOneSnapshot(asOf - tries)
        if (ids === 'too many') return undefined
        if (ids !== 'moved') return ids
      }
      return undefined
    },

    span: () => ({ earliest, latest }),
    end: () => ({ asOf: earliest, isOneSnapshot: earliest === latest, takenAt, freshUntil }),
  }
}
