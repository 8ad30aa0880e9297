/** What protects a poller from losses. The tests switch these off one by one (test/simulation/safeguards.test.ts). */
export const allSafeguards = {
  /** A statement of the fold writes nothing if a newer epoch was taken before it began. */
  fence: true,
  /** A new leader waits until ClickHouse runs no statement of the fold. */
  wait: true,
  /** After a statement whose answer was not seen, the leader takes a new epoch. Without this, it sends the statement again. */
  newEpoch: true,
  /** The watermark does not pass a statement that runs. */
  line: true,
  /** A stamp is at least the watermark. */
  stampAtWatermark: true,
  /** That a campaign is in quarantine is recorded before the progress of the fold that left it out. */
  quarantineRecord: true,
  /** `updated_since` finds what changed in that very millisecond. */
  inclusiveBound: true,
  /** The pages of a list come from one snapshot. */
  snapshots: true,
  /** The documented loop repeats a walk whose pages come from several snapshots. */
  wholeWalks: true,
}

export type Safeguards = Readonly<Record<keyof typeof allSafeguards, boolean>>
