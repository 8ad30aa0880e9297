/**
 * Rejects by the kind of their reason: a wrong schema makes thousands that differ in a value at most.
 *
 * Quoted texts and numbers of a reason are left out of its kind; schema ids stay, since each has a cause of its own.
 */
import type { StoredReject } from '../shared/event-log/port.ts'
import { placeName } from '../shared/event-log/reject-filter.ts'

export interface ReasonCount {
  /** The reason, its values left out. */
  reason: string
  count: number
  /** When the first and the last of them were rejected, ms since the epoch. */
  first: number
  last: number
  /** Where one of them stood, for `rejects show`. */
  example: string
}

export interface ReasonTally {
  add(reject: StoredReject, reason?: string): void
  /** The most frequent first. */
  counts(): ReasonCount[]
}

const kindsMax = 10_000
const otherKind = '(any other reason)'

/** Counts rejects by the reason that they were kept with, or the one that is given. Memory is bounded. */
export function createReasonTally(): ReasonTally {
  const kinds = new Map<string, ReasonCount>()
  return {
    add(reject, reason = reject.reason) {
      const asked = reasonKind(reason)
      const kind = kinds.has(asked) || kinds.size < kindsMax ? asked : otherKind
      const { rejectedAt: at } = reject
      const known = kinds.get(kind)
      kinds.set(kind, {
        reason: kind,
        count: (known?.count ?? 0) + 1,
        first: Math.min(known?.first ?? at, at),
        last: Math.max(known?.last ?? at, at),
        example: known?.example ?? placeName(reject.record),
      })
    },
    counts: () => [...kinds.values()].sort((a, b) => b.count - a.count || b.last - a.last),
  }
}

/** `amount_minor -5 is negative` becomes `amount_minor … is negative`. Pure. */
export function reasonKind(reason: string): string {
  return reason.replace(
    /(schema id \d+)|"(?:[^"\\]|\\.)*"|(?<![\w.])-?\d+(?:\.\d+)?(?![\w])/g,
    (_, schemaId) => schemaId ?? '…',
  )
}
