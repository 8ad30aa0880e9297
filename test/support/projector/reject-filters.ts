/** Distinct rejects, filters for them, and a plain model of which rejects a filter selects. */
import fc from 'fast-check'
import { topics } from '../../../contracts/events/event.ts'
import type { LogRecord } from '../../../services/log/port.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { createRejectStore, placeName, type Reject } from '../../../services/tables/rejects.ts'
import {
  latestRejects,
  type RejectFilter,
  type StoredReject,
} from '../../../services/tables/stored-rejects.ts'

export interface TimedReject extends Reject {
  rejectedAt: number
}

/** Stores each reject at its time. */
export async function storeAt(
  tables: Tables,
  databases: Databases,
  rejects: readonly TimedReject[],
  log = '',
): Promise<void> {
  for (const [now, ofTime] of Map.groupBy(rejects, ({ rejectedAt }) => rejectedAt)) {
    await createRejectStore({ tables, databases, keptMs: 86_400_000_000, now: () => now })(log, ofTime)
  }
}

/** All rejects of these tables, in the order of their places. */
export async function keptRejects(tables: Tables, databases: Databases): Promise<StoredReject[]> {
  const rejects = await latestRejects({ tables, databases }, {}, 10_000)
  return rejects.toSorted((a, b) => placeOf(a) - placeOf(b) || a.record.topic.localeCompare(b.record.topic))
}

function placeOf({ record }: StoredReject): number {
  return record.partition * 1e9 + record.offset
}

export const startedAt = Date.UTC(2026, 0, 1)
const minutes = 12
const reasons = [
  'slug is empty',
  'Slug is empty',
  'schema id 9 is unknown',
  'amount_minor -5 is negative',
  'a%b_c é',
]

/** This many rejects, each with a separate place, in the order of their times, as in a log. */
export function rejectsOf(count: number, partitions: number): TimedReject[] {
  return Array.from({ length: count }, (_, n) => {
    const record: LogRecord = {
      topic: topics[n % topics.length] ?? 'pledges',
      partition: Math.floor(n / topics.length) % partitions,
      offset: n,
      appendedAt: startedAt - 1_000 - n,
      key: Buffer.from(`key ${n}`),
      value: Buffer.from([n % 256, 0, 255]),
    }
    const rejectedAt = startedAt + Math.floor((n * minutes) / count) * 60_000
    return { record, reason: reasons[Math.floor(n / topics.length) % reasons.length] ?? '', rejectedAt }
  })
}

export const anyFilter: fc.Arbitrary<RejectFilter> = fc
  .record({
    topic: fc.option(fc.constantFrom(...topics), { nil: undefined }),
    reasonPart: fc.option(
      fc.constantFrom('slug', 'lug is', 'is', 'schema id 9', '%', '_', 'é', '', "'", 'SLUG'),
      { nil: undefined },
    ),
    since: fc.option(anyTime(), { nil: undefined }),
    until: fc.option(anyTime(), { nil: undefined }),
  })
  .map(filter => Object.fromEntries(Object.entries(filter).filter(([, part]) => part !== undefined)))

/** The places of the rejects that the filter selects, in their order. */
export function placesAskedFor(rejects: readonly TimedReject[], filter: RejectFilter): string[] {
  return rejects
    .filter(({ record }) => !filter.topic || record.topic === filter.topic)
    .filter(({ reason }) => reason.indexOf(filter.reasonPart ?? '') >= 0)
    .filter(({ rejectedAt }) => filter.since === undefined || rejectedAt >= filter.since)
    .filter(({ rejectedAt }) => filter.until === undefined || rejectedAt < filter.until)
    .map(({ record }) => placeName(record))
}

export function placesOf(rejects: readonly TimedReject[]): string[] {
  return rejects.map(({ record }) => placeName(record))
}

// At the times of rejects, which are whole minutes, and one millisecond before or after.
function anyTime(): fc.Arbitrary<number> {
  return fc
    .tuple(fc.integer({ min: -1, max: minutes }), fc.constantFrom(-1, 0, 1))
    .map(([minute, ms]) => startedAt + minute * 60_000 + ms)
}
