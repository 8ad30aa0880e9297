/**
 * The reject gate: a wrong schema must not drain a topic into the rejects. Pure state machine over counts.
 *
 * It looks at the last `windowRecords` records. Where more than `shareMax` of them were rejects, it is shut: the batch
 * that shut it is not written, its offsets are not committed, and the projector stops.
 */

export interface RejectGateSettings {
  /** Share of recent records that may be rejects, 0 to 1; 1 never stops. */
  shareMax: number
  /** How many records are recent. */
  windowRecords: number
  /** Rejects below which the gate stays open: a few bad records in a quiet log are no reason to stop. */
  rejectsMin: number
}

export interface RejectGate {
  /** Counts a batch and says whether it may pass. */
  admit(counts: { records: number; rejects: number }): boolean
}

export function createRejectGate(settings: RejectGateSettings): RejectGate {
  let recent: { records: number; rejects: number }[] = []

  return {
    admit(counts) {
      recent.push(counts)
      let records = 0
      let rejects = 0
      let kept = 0
      // From the newest back, until the window is full: whole batches, at least the newest.
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

/** The projector stopped because too much was rejected. */
export class TooManyRejects extends Error {
  override name = 'TooManyRejects'
}
