/**
 * A circuit breaker for rejects: a wrong schema must not drain a whole topic into the dead-letter queue. It is a pure state
 * machine over counts.
 *
 * It looks at the last `windowRecords` records. If more than the share `shareMax` of them was rejected, it trips: the batch
 * that tripped it is not written, its positions stay, and the projector stops.
 */

export interface RejectCircuitBreakerSettings {
  /** Share of recent records that may be rejected, 0 to 1. With 1 it never trips. */
  shareMax: number
  /** How many records count as recent. */
  windowRecords: number
  /** With fewer rejects than this it never trips: a few bad records in a quiet log are no reason to stop. */
  rejectsMin: number
}

interface Counts {
  records: number
  rejects: number
}

export interface RejectCircuitBreaker {
  /** Counts a batch. Returns whether the batch may pass. */
  admit(counts: Counts): boolean
  /** The sums over the window at the last `admit`. */
  window(): Counts
}

/** `earlier`: the batches of earlier runs that still count, the oldest first. */
export function createRejectCircuitBreaker(
  settings: RejectCircuitBreakerSettings,
  earlier: readonly Counts[] = [],
): RejectCircuitBreaker {
  let recent: Counts[] = [...earlier]
  let records = 0
  let rejects = 0

  return {
    window: () => ({ records, rejects }),
    admit(counts) {
      recent.push(counts)
      records = 0
      rejects = 0
      let kept = 0
      // Counts whole batches from the newest back until the window is full. The newest always counts.
      for (let i = recent.length - 1; i >= 0 && records < settings.windowRecords; i--) {
        records += recent[i]?.records ?? 0
        rejects += recent[i]?.rejects ?? 0
        kept++
      }
      recent = recent.slice(-kept)
      return rejects < settings.rejectsMin || rejects <= settings.shareMax * records
    },
  }
}

/** The projector stopped because too many records were rejected. */
export class TooManyRejects extends Error {
  override name = 'TooManyRejects'
}
