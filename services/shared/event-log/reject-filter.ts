/** Which rejects somebody asks for, in whichever log they are kept. */
import type { Topic } from '../../../contracts/events/event.ts'
import type { LogRecord, StoredReject } from './port.ts'

/** What is given has to hold; nothing given, all are asked for. */
export interface RejectFilter {
  topic?: Topic
  /** The reason holds this text, as it is written. */
  reasonPart?: string
  /** Rejected at this time or later, in ms since the epoch. */
  since?: number
  /** Rejected before this time, in ms since the epoch. */
  until?: number
}

/** Where a rejected record stands, or stood, in its own topic. */
export type RejectPlace = Pick<LogRecord, 'topic' | 'partition' | 'offset'>

/** Takes rejects in the order in which they were put; resolves with whether more are wanted. */
export type TakeRejects = (rejects: StoredReject[]) => Promise<boolean>

/** What was kept as a reject and cannot be read as one: where it stands in the reject topic, and why. */
export interface UnreadableReject {
  partition: number
  offset: number
  reason: string
}

/** What a search has seen. */
export interface Searched {
  /** Kept rejects that were looked at, and how many there are of the times that were asked for. */
  messages: number
  of: number
  /** Which bound left the others out. */
  cutBy?: 'messages' | 'time'
  /** The first of them. */
  unreadable: UnreadableReject[]
  unreadableCount: number
}

export interface FoundRejects extends Searched {
  /** The latest first. */
  rejects: StoredReject[]
  /** How many the filter asks for, of those that were looked at. */
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

/** The latest first; of one moment by place, the later offset first. */
export function byLatest(a: StoredReject, b: StoredReject): number {
  return (
    b.rejectedAt - a.rejectedAt ||
    Number(a.record.topic > b.record.topic) - Number(a.record.topic < b.record.topic) ||
    a.record.partition - b.record.partition ||
    b.record.offset - a.record.offset
  )
}
