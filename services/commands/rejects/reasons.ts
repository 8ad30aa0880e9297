/**
 * Groups rejects by the kind of their reason. A wrong schema makes thousands of rejects whose reasons differ only in
 * a value.
 *
 * The kind leaves out the quoted texts and numbers of a reason. It keeps schema ids, because each has its own cause.
 */
import type { StoredReject } from '../../shared/event-log/port.ts'
import { placeName } from '../../shared/event-log/reject-filter.ts'

export interface ReasonCount {
  /** The reason, without its values. */
  reason: string
  count: number
  /** When the first and the last of them were rejected, ms since the epoch. */
  first: number
  last: number
  /** The place of one of them, for `rejects show`. */
  example: string
}

export interface ReasonTally {
  add(reject: StoredReject, reason?: string): void
  /** The most frequent first. */
  counts(): ReasonCount[]
}

const kindsMax = 10_000
const otherKind = '(any other reason)'

/** Counts rejects by their stored reason, or by the given one. Memory is bounded. */
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
