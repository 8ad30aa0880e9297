/** A filter for rejects, for both event logs. */
import type { Topic } from '../../../contracts/events/event.ts'
import type { LogRecord, StoredReject } from './port.ts'

/** All given conditions must hold. Without conditions, all rejects match. */
export interface RejectFilter {
  topic?: Topic
  /** The reason contains this exact text. */
  reasonPart?: string
  /** Rejected at this time or later, in ms since the epoch. */
  since?: number
  /** Rejected before this time, in ms since the epoch. */
  until?: number
}

/** The place of a rejected record in its own topic. */
export type RejectPlace = Pick<LogRecord, 'topic' | 'partition' | 'offset'>

/** Takes rejects in the order in which they were stored. Resolves with whether more are wanted. */
export type TakeRejects = (rejects: StoredReject[]) => Promise<boolean>

/** A message of the reject topic that cannot be read as a reject: its place, and why. */
export interface UnreadableReject {
  partition: number
  offset: number
  reason: string
}

/** What a search has read. */
export interface Searched {
  /** How many stored rejects were read, and how many there are in the requested period. */
  messages: number
  of: number
  /** The bound that left the others out. */
  cutBy?: 'messages' | 'time'
  /** The first of them. */
  unreadable: UnreadableReject[]
  unreadableCount: number
}

export interface FoundRejects extends Searched {
  /** The latest first. */
  rejects: StoredReject[]
  /** How many of those that were read match the filter. */
  matched: number
}

/** `pledges/0/17` */
export function placeName({ topic, partition, offset }: RejectPlace): string {
  return `${topic}/${partition}/${offset}`
}

export function matches(
  { topic, reasonPart, ...times }: RejectFilter,
  { record, reason, rejectedAt }: StoredReject,
): boolean {
  return (
    (topic === undefined || record.topic === topic) &&
    (reasonPart === undefined || reason.includes(reasonPart)) &&
    isWithin(times, rejectedAt)
  )
}

export function isWithin({ since = -Infinity, until = Infinity }: RejectFilter, at: number): boolean {
  return at >= since && at < until
}

/** The latest first. At the same time: by place, the later offset first. */
export function byLatest(a: StoredReject, b: StoredReject): number {
  return (
    b.rejectedAt - a.rejectedAt ||
    Number(a.record.topic > b.record.topic) - Number(a.record.topic < b.record.topic) ||
    a.record.partition - b.record.partition ||
    b.record.offset - a.record.offset
  )
}
