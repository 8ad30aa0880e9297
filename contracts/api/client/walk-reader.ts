/** Reads the pages of one walk, within a limit, and summarises them. */
import { limitMax } from '../parameters.ts'
import { ClientError } from './errors.ts'
import { newMsMax, type Page } from './pages.ts'
import { msUntil, type Runtime } from './runtime.ts'

export interface PageRange {
  offset: number
  limit: number
  /** Unix milliseconds, inclusive; null: all campaigns. */
  updatedSince: number | null
}

export interface WalkDependencies extends Pick<Runtime, 'now' | 'sleep'> {
  /** Reads a page of the list, newest first. */
  readPage(range: PageRange): Promise<Page>
  pageSize: number
  signal: AbortSignal | undefined
}

/** The summary of all pages of a walk. Times are Unix milliseconds. */
export interface WalkEnd {
  /** The watermark: the `updatedSince` of the next walk, which finds every later change. */
  asOf: number
  /** Whether all pages came from one snapshot. */
  isOneSnapshot: boolean
  /** The digest of this snapshot; null if the service did not tell it, or if there were several. */
  digest: string | null
  /** The snapshots of all pages were taken at this moment or later, by the client's clock. */
  takenAt: number
  /** Until then the same walk would return the same pages, by the client's clock. */
  freshUntil: number
}

export interface WalkReader {
  /** Reads the page at this offset. */
  pageAt(offset: number): Promise<Page>
  /**
   * The ids of all campaigns that changed since `asOf`, from one snapshot that was taken after those of all pages so far.
   * Undefined if they cannot be determined: there are too many, or the snapshots change too fast.
   */
  changesSince(asOf: number): Promise<ReadonlySet<string> | undefined>
  /** The `X-Data-As-Of` of the last page, and the snapshots of all pages so far. */
  span(): { lastAsOf: number; snapshotIds: ReadonlySet<string> }
  end(): WalkEnd
}

const sparePages = 100
const pagesReadPerPage = 4
// Reading the changes is worth it only if they are few compared with the list.
const changesMax = 5000
const changesTriesMax = 3

/** Every method except `span` and `end` rejects with `unstable_walk` when the limit on pages is reached. */
export function createWalkReader(
  { readPage, pageSize, now, sleep, signal }: WalkDependencies,
  updatedSince: number | null,
): WalkReader {
  let pagesRead = 0
  let pagesMax = sparePages
  let earliest = Infinity
  let latest = -Infinity
  let lastAsOf = Infinity
  // When the first page of the last new snapshot arrived, so all snapshots were taken before that.
  let seenAt = -Infinity
  const snapshotIds = new Set<string>()
  let digest: string | null = null
  let takenAt = Infinity
  let freshUntil = Infinity

  async function read(range: PageRange): Promise<Page> {
    if (++pagesRead > pagesMax) {
      const message = `the pages still changed after ${pagesMax} of them had been read`
      throw new ClientError({ code: 'unstable_walk', message })
    }
    return readPage(range)
  }

  async function idsInOneSnapshot(since: number): Promise<ReadonlySet<string> | 'moved' | 'too many'> {
    const ids = new Set<string>()
    let snapshotId: string | undefined
    for (let offset = 0; ; offset += limitMax) {
      const page = await read({ offset, limit: limitMax, updatedSince: since })
      snapshotId ??= page.snapshotId
      if (page.snapshotId !== snapshotId) return 'moved'
      // The watermark stands still now and then, so it alone does not show which snapshot is the newer one.
      if (page.asOf < latest || page.takenAt < seenAt) return 'moved'
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
      lastAsOf = page.asOf
      if (!snapshotIds.has(page.snapshotId)) seenAt = Math.max(seenAt, page.receivedAt)
      snapshotIds.add(page.snapshotId)
      digest ??= page.digest
      takenAt = Math.min(takenAt, page.takenAt)
      freshUntil = Math.min(freshUntil, page.freshUntil)
      return page
    },

    async changesSince(asOf) {
      for (let tries = 0; tries < changesTriesMax; tries++) {
        await sleep(msUntil(seenAt + newMsMax, now(), newMsMax), signal)
        // One millisecond earlier is another query, so the cache has no older response for it.
        const ids = await idsInOneSnapshot(asOf - tries)
        if (ids === 'too many') return undefined
        if (ids !== 'moved') return ids
      }
      return undefined
    },

    span: () => ({ lastAsOf, snapshotIds: new Set(snapshotIds) }),
    end() {
      const isOneSnapshot = snapshotIds.size === 1
      return { asOf: earliest, isOneSnapshot, digest: isOneSnapshot ? digest : null, takenAt, freshUntil }
    },
  }
}
