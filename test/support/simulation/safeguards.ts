/** What protects a poller from losses. The tests switch these off one by one (test/simulation/safeguards.test.ts). */
export interface Safeguards {
  /** A statement of the fold writes nothing if a newer epoch was taken before it began. */
  fence: boolean
  /** A new leader waits until ClickHouse runs no statement of the fold. */
  wait: boolean
  /** After a statement whose answer was not seen, the leader takes a new epoch. Without this, it sends the statement again. */
  newEpoch: boolean
  /** The watermark does not pass a statement that runs. */
  line: boolean
  /** A stamp is at least the watermark. */
  stampAtWatermark: boolean
  /** That a campaign is in quarantine is recorded before the progress of the fold that left it out. */
  quarantineRecord: boolean
  /** `updated_since` finds what changed in that very millisecond. */
  inclusiveBound: boolean
  /** The pages of a list come from one snapshot. */
  snapshots: boolean
  /** The documented loop repeats a walk whose pages come from several snapshots. */
  wholeWalks: boolean
}

export const allSafeguards: Safeguards = {
  fence: true,
  wait: true,
  newEpoch: true,
  line: true,
  stampAtWatermark: true,
  quarantineRecord: true,
  inclusiveBound: true,
  snapshots: true,
  wholeWalks: true,
}
