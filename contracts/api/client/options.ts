/** The options of the client, and the parameters and results of its methods. */
import type { ListParameters } from '../parameters.ts'
import type { ProjectListBody } from './bodies.ts'
import type { ClientError } from './errors.ts'
import type { Runtime } from './runtime.ts'
import type { Ids, WatermarkStore } from './sync.ts'
import type { WholeCopy } from './whole-copy.ts'

export interface ClientOptions {
  /** The base address, including `/api/v1`. */
  baseUrl: string
  key: string
  secret: string
  /** Time limit of one attempt, in milliseconds. Default: 30,000. */
  attemptMsMax?: number
  /** Attempts per request, including the first. Default: 6. */
  attemptsMax?: number
  /** Time from the first failure of a request to its last attempt, in milliseconds. Default: 180,000. */
  retryMsMax?: number
  /** Replaces fetch, clock, randomness or timer. */
  runtime?: Partial<Runtime>
}

/** An abort rejects with the signal's reason. */
export interface Abortable {
  signal?: AbortSignal
}

export interface ListOptions extends Partial<Omit<ListParameters, 'updatedSince'>>, Abortable {
  /**
   * ISO 8601, inclusive: only campaigns that changed since then. With a filter, the list lacks every campaign that no longer
   * matches it: with the status LIVE, one that has become FUNDED.
   */
  updatedSince?: string | null
}

export interface ListAnswer extends ProjectListBody {
  /** `X-Data-As-Of`, ISO 8601: the list contains every change up to this moment. Null if the header is missing. */
  asOf: string | null
  /**
   * `X-Snapshot-Id`: pages of one query with the same value come from one snapshot of the list. Null if the header is
   * missing.
   */
  snapshotId: string | null
}

export interface WalkOptions extends Abortable {
  /** Campaigns per request. Default: 100, which is the maximum. */
  pageSize?: number
}

export interface MirrorOptions extends WalkOptions {
  /** Stores the watermark across restarts. Default: none, so every start walks all pages. */
  store?: WatermarkStore
  /**
   * Gives the whole copy to start with if the store has no watermark, in place of a walk: `() => client.wholeCopy()`. Null: walk.
   */
  from?: () => Promise<WholeCopy | null> | WholeCopy | null
  /** Time between the starts of two polls, in milliseconds, at least 1,000. Default: 60,000. */
  intervalMs?: number
  /**
   * Walks all pages, instead of a poll, and reports which of the held campaigns are gone: at intervals if the service does not
   * tell removals, and once if the mirror was away for longer than they are kept.
   */
  reconcile?: {
    /** Time between two of them, in milliseconds. Default: a day. After a start that resumes, the first one comes with the second poll. */
    everyMs?: number
    /** The ids that the consumer holds. Called at the start of each. */
    held: () => Ids
  }
  /**
   * Called when a poll has failed after all retries, by an error that may disappear. The mirror then continues with the
   * next poll. Default: the mirror rejects.
   */
  onOutage?: (error: ClientError) => void
}

export interface ReconcileOptions extends WalkOptions {
  /** The ids that the consumer holds. */
  held: Ids
  /** Receives the watermark at the end, so that a mirror can continue from there. */
  store?: WatermarkStore
}
