/** What the client is made with, and what its calls take and give. */
import type { ListParameters } from '../parameters.ts'
import type { ProjectListBody } from '../schemas.ts'
import type { ClientError } from './errors.ts'
import type { Filter } from './pages.ts'
import type { Surroundings } from './surroundings.ts'
import type { Ids, WatermarkStore } from './sync.ts'

export interface ClientOptions {
  /** Up to and including `/api/v1`. */
  baseUrl: string
  key: string
  secret: string
  /** For one attempt at a request, in milliseconds. Default: 30,000. */
  attemptMsMax?: number
  /** Attempts at one request, the first included. Default: 6. */
  attemptsMax?: number
  /** From the first failure of a request to its last attempt, in milliseconds. Default: 180,000. */
  retryMsMax?: number
  /** What to use in the place of fetch, clock, randomness and timer. */
  surroundings?: Partial<Surroundings>
}

/** Aborting rejects with the signal's reason. */
export interface Abortable {
  signal?: AbortSignal
}

export interface ListOptions extends Partial<Omit<ListParameters, 'updatedSince'>>, Abortable {
  /** ISO 8601, inclusive: only what has changed since. */
  updatedSince?: string | null
  /** Allows a filter together with `updatedSince`, which hides every campaign that has left the filter. */
  allowFilteredDelta?: boolean
}

export interface ListAnswer extends ProjectListBody {
  /** `X-Data-As-Of`, ISO 8601: every change up to this moment is in the list. Null where it cannot be read. */
  asOf: string | null
}

export interface WalkOptions extends Filter, Abortable {
  /** Campaigns a request. Default: 100, which is the most. */
  pageSize?: number
}

export interface MirrorOptions extends WalkOptions {
  /** Where the place is kept over restarts. Default: nowhere, so that every start walks everything. */
  store?: WatermarkStore
  /** From the start of one poll to that of the next, in milliseconds, at least 1,000. Default: 60,000. */
  intervalMs?: number
  /** Allows a filter, though nothing is told of a campaign that has left it (but by `reconcile`). */
  allowFilteredDelta?: boolean
  /** From time to time walks everything in the place of a poll, and tells which of the held campaigns are gone. */
  reconcile?: {
    /** From one to the next, in milliseconds; after a start that resumes, also to the first. */
    everyMs: number
    /** The ids that the consumer holds. Asked at the start of each. */
    held: () => Ids
  }
  /**
   * Tells again of a campaign that looks in the list as it did. Needed by those who read details: a change of what only
   * the detail shows cannot be told from a repetition. Default: false.
   */
  reportRepeats?: boolean
  /** Told when a poll has failed for good by something that may pass; the next one is then tried. Default: to reject. */
  onOutage?: (error: ClientError) => void
}

export interface ReconcileOptions extends WalkOptions {
  /** The ids that the consumer holds. */
  held: Ids
  /** Is given the watermark at the end, so that a mirror can go on from there. */
  store?: WatermarkStore
}
