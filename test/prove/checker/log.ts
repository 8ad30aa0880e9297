/**
 * The log of a world: what the platform said and when, every answer that any reader got, and what was disturbed. The checker
 * decides from it alone. Times are Unix ms by a clock that is not set back.
 */
import type { Project, ProjectDetail, Stats } from '../../../contracts/api/client/bodies.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'

/** A campaign as it was shown, without what depends on the day. */
export type Row = Omit<Project, 'days_remaining'> | Omit<ProjectDetail, 'days_remaining'>

export interface Answer {
  kind: 'answer'
  reader: string
  /** The query process that was asked. */
  process: number
  key: string
  /** Below the base URL. */
  path: string
  sentAt: number
  receivedAt: number
  /** 0: there was no answer. */
  status: number
  /** The statuses that it may have if nothing is disturbed. */
  expected: readonly number[]
  /** How old it is at most: its content was read at `sentAt - ageMs` or later. */
  ageMs: number
  /** Its watermark. */
  asOf?: number | undefined
  snapshot?: string | undefined
  /** `X-Data-Digest`. */
  digest?: string | undefined
  rows: readonly Row[]
  page?: { total: number; limit: number; offset: number; has_more: boolean }
  removals?: readonly { id: string; updated_at: string }[]
  /** From this moment on, no removal is missing. */
  keptSince?: number
  stats?: Stats
  /** What every response promises, and this one does not keep. */
  broken?: string
}

/**
 * What readers must expect in this time: errors, a process that is away or not ready, limits that each process has alone, or that one process counts
 * the generation that another has left: each follows a promotion within a second. From a restore on, rows have other stamps, and
 * removals may be missing: of what was public after the backup alone.
 */
export interface Disturbed {
  kind: 'disturbed'
  what: 'errors' | 'silence' | 'limits' | 'generation' | 'restore'
  /** Of silence: the process. Without it, all of them. */
  process?: number | undefined
  from: number
  to: number
}

export type Entry =
  | Answer
  | Disturbed
  /** Events that were sent to the log. They may be visible from then on. */
  | { kind: 'said'; at: number; events: readonly ChangeEvent[] }
  /**
   * Nothing is said in this time, and the tables are what was said before: the runner has compared them. So an answer that was read
   * in it says exactly that.
   */
  | { kind: 'quiet'; from: number; to: number }
  /** The revocation of the key was asked for, and the ledger had it. */
  | { kind: 'revoked'; askedAt: number; at: number; key: string }
  /** A query process said whether it is ready: it has read all revocations of two seconds before. */
  | { kind: 'ready'; process: number; sentAt: number; receivedAt: number; isReady: boolean }
  /** The copy that a mirror has at the end. */
  | { kind: 'copy'; mirror: string; rows: readonly Row[] }
  /** What a process said of its own assertions (services/runtime/ops/invariants.ts) at the end: those that did not hold. */
  | { kind: 'broken'; process: string; names: readonly string[] }

export type EntryOf<K extends Entry['kind']> = Extract<Entry, { kind: K }>
export type Log = readonly Entry[]

/** What is wrong, and the answers that show it. */
export interface Violation {
  rule: string
  text: string
  /** The campaign or key. */
  about: string
  answers: readonly Answer[]
}
