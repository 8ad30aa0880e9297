/** What a purge reports: each copy of the data, what was done to it, and what is left of it until when. */
import { messageOf } from '../runtime/message-of.ts'

export interface PurgedCopy {
  /** The copy, in a word or two. */
  copy: string
  /** What was done; in a dry run, what would be. */
  done: string
  /** What deleted or replaced content is left, or may be left; null: none. */
  left: string | null
  /** When the rest will be gone by itself, ISO 8601; null: not by itself, or nothing is left. */
  until: string | null
  /** Whether the purge did all that it can do there. Otherwise run it again, or follow the advice in the report. */
  is_reached: boolean
}

export interface PurgeReport {
  is_dry_run: boolean
  /** ISO 8601. */
  started_at: string
  /** Whether every copy was reached. */
  is_complete: boolean
  copies: PurgedCopy[]
}

/** A copy of which nothing is left. */
export function purged(copy: string, done: string): PurgedCopy {
  return { copy, done, left: null, until: null, is_reached: true }
}

/** A copy of which something is left until a time (Unix ms), or until an operator acts (null). */
export function leftOver(copy: string, done: string, left: string, until: number | null): PurgedCopy {
  return { copy, done, left, until: until === null ? null : new Date(until).toISOString(), is_reached: true }
}

/** What the work reports of a copy. If it fails, the purge could not reach the copy. */
export function tried(copy: string, work: () => Promise<PurgedCopy>): Promise<PurgedCopy> {
  return work().catch(error => unreached(copy, messageOf(error)))
}

/** A copy that the purge could not reach. */
export function unreached(copy: string, reason: string): PurgedCopy {
  return { copy, done: 'nothing', left: reason, until: null, is_reached: false }
}
