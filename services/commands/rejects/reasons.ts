/** Counts the reasons of records that are still no events, by their kind. Memory is bounded. */
import { placeName, reasonKind } from '../../tables/rejects.ts'
import type { ReasonCount, StoredReject } from '../../tables/stored-rejects.ts'

export interface ReasonTally {
  add(reject: StoredReject, reason: string): void
  /** The most frequent first. */
  counts(): ReasonCount[]
}

const kindsMax = 10_000
const otherKind = '(any other reason)'

export function createReasonTally(): ReasonTally {
  const kinds = new Map<string, ReasonCount>()
  return {
    add({ record, rejectedAt: at }, reason) {
      const asked = reasonKind(reason)
      const kind = kinds.has(asked) || kinds.size < kindsMax ? asked : otherKind
      const known = kinds.get(kind)
      kinds.set(kind, {
        reason: kind,
        count: (known?.count ?? 0) + 1,
        first: Math.min(known?.first ?? at, at),
        last: Math.max(known?.last ?? at, at),
        example: known?.example ?? placeName(record),
      })
    },
    counts: () => [...kinds.values()].sort((a, b) => b.count - a.count || b.last - a.last),
  }
}
