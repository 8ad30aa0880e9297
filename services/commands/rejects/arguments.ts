/** Reads the arguments of the rejects commands: places, times and filters. */
import { topics } from '../../../contracts/events/event.ts'
import type { RejectPlace } from '../../tables/rejects.ts'
import type { RejectFilter } from '../../tables/stored-rejects.ts'
import { UsageError } from '../command.ts'
import { hasRealDay } from '../iso-day.ts'

/** The options of a filter, for `parseArgs`. */
export const filterOptions = {
  topic: { type: 'string' },
  reason: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
} as const

export interface FilterValues {
  topic?: string
  reason?: string
  since?: string
  until?: string
}

const unitMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
}
const isoTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(?<zone>Z|[+-]\d\d:\d\d)?)?$/i

/** Throws `UsageError` that names the option. */
export function readFilter({ topic, reason, since, until }: FilterValues, now: number): RejectFilter {
  const filter: RejectFilter = {
    ...(topic !== undefined && { topic: readTopic(topic) }),
    ...(reason !== undefined && { reasonPart: reason }),
    ...(since !== undefined && { since: readTime('since', since, now) }),
    ...(until !== undefined && { until: readTime('until', until, now) }),
  }
  if (filter.since !== undefined && filter.until !== undefined && filter.since >= filter.until) {
    throw new UsageError('--since has to be before --until')
  }
  return filter
}

/** A time in ms since the epoch: ISO 8601 (UTC if it names no zone), or an age such as 90s, 15m, 2h, 3d or 1w. */
export function readTime(option: string, text: string, now: number): number {
  const [, amount, unit = ''] = /^(\d{1,9})([smhdw])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * (unitMs[unit] ?? 0)
  const found = isoTime.exec(text)
  const hasClock = text.includes('T') || text.includes('t')
  const at = found ? Date.parse(found.groups?.zone || !hasClock ? text : `${text}Z`) : Number.NaN
  if (Number.isNaN(at)) {
    throw new UsageError(
      `--${option} takes a time like 2026-11-01T08:30:00Z or a duration back like 2h, not ${JSON.stringify(text)}`,
    )
  }
  if (!hasRealDay(text))
    throw new UsageError(`--${option} names a day that does not exist: ${JSON.stringify(text)}`)
  return at
}

/** A place as `rejects list` prints it: `pledges/0/17`. Throws `UsageError`. */
export function readPlace(text: string): RejectPlace {
  const [, topic, partition, offset] = /^([a-z-]+)\/(\d{1,15})\/(\d{1,15})$/.exec(text) ?? []
  if (topic === undefined) {
    throw new UsageError(`a PLACE is TOPIC/PARTITION/OFFSET, like pledges/0/17, not ${JSON.stringify(text)}`)
  }
  return { topic: readTopic(topic), partition: Number(partition), offset: Number(offset) }
}

function readTopic(text: string): RejectPlace['topic'] {
  const topic = topics.find(known => known === text)
  if (!topic) throw new UsageError(`a topic is one of ${topics.join(', ')}, not ${JSON.stringify(text)}`)
  return topic
}
