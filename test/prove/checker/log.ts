/**
 * The log of a world: what the platform said and when, every answer that any reader got, and what was disturbed. The checker
 * decides from it alone. Times are Unix ms by a clock that is not set back.
 */
import type { Project, ProjectDetail, Stats } from '../../../contracts/api/client/bodies.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'

/** A campaign as it was shown, without what depends on the day. */
export type Row = Omit<Project, 'days_remaining'> | Omit<ProjectDetail, 'days_remaining'>

/** Events that were sent to the log. They may be visible from then on. */
export interface Said {
  kind: 'said'
  at: number
  events: readonly ChangeEvent[]
}

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
  asOf?: number
  snapshot?: string
  /** `X-Data-Digest`. */
  digest?: string
  /** The rows that it shows, as numbers of the log's rows. */
  rows?: readonly number[]
  page?: { total: number; limit: number; offset: number; has_more: boolean }
  removals?: readonly { id: string; updated_at: string }[]
  /** From this moment on, no removal is missing. */
  keptSince?: number
  stats?: Stats
  /** What every response promises, and this one does not keep. */
  broken?: string
}

/**
 * Nothing is said in this time, and the tables are what was said before: the runner has compared them. So an answer that was read
 * in it says exactly that.
 */
export interface Quiet {
  kind: 'quiet'
  from: number
  to: number
}

/** The revocation of the key was asked for, and the ledger had it. */
export interface Revoked {
  kind: 'revoked'
  askedAt: number
  at: number
  key: string
}

/** A query process said whether it is ready: it has read all revocations of two seconds before. */
export interface Ready {
  kind: 'ready'
  process: number
  sentAt: number
  receivedAt: number
  isReady: boolean
}

/**
 * What readers must expect in this time: errors, a process that is away or not ready, limits that each process has alone, or that one process counts
 * the generation that another has left: each follows a promotion within a second. From a restore on, rows have other stamps, and
 * removals may be missing: of what was public after the backup alone.
 */
export interface Disturbed {
  kind: 'disturbed'
  what: 'errors' | 'silence' | 'limits' | 'generation' | 'restore'
  /** Of silence: the process. */
  process?: number
  from: number
  to: number
}

/** The copy that a mirror has at the end. */
export interface Copy {
  kind: 'copy'
  mirror: string
  rows: readonly number[]
}

/** What a process said of its own assertions (services/runtime/ops/invariants.ts) at the end: those that did not hold. */
export interface Broken {
  kind: 'broken'
  process: string
  names: readonly string[]
}

export type Entry = Said | Answer | Quiet | Revoked | Ready | Disturbed | Copy | Broken

export interface Log {
  /** Each shown row once: most answers show the same ones again. */
  rows: Row[]
  entries: Entry[]
}

/** What is wrong, and the answers that show it. */
export interface Violation {
  rule: string
  text: string
  /** The campaign or key. */
  about: string
  answers: readonly Answer[]
}
