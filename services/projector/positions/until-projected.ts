/** Waits until everything that is in the log now is in the tables. Later events are not waited for. */
import { lagRecords, type PartitionLag, partitionName } from '../../log/port.ts'
import { type RetryDependencies, retry } from '../../runtime/async/retry.ts'
import type { Shard } from '../../tables/port.ts'
import { readUnfolded } from '../fold/fold-progress.ts'

/** The time was not enough. */
export class NotProjected extends Error {
  override name = 'NotProjected'
}

interface ProjectedBounds {
  /** How long to wait, ms. */
  msMax: number
  /** For the message of the error: what to do then. */
  wayOn: string
}

/** Resolves when the projectors have committed it. Throws `NotProjected`. */
export async function untilProjected(
  lag: () => Promise<PartitionLag[]>,
  bounds: ProjectedBounds,
  time?: RetryDependencies,
): Promise<void> {
  // A service may answer with what it began to read before this call, so the first answer may lack records.
  await lag()
  const ends = await lag()
  const look = async () => {
    const committed = new Map((await lag()).map(at => [partitionName(at), at.committed]))
    const waiting = lagRecords(ends.map(at => ({ ...at, committed: committed.get(partitionName(at)) ?? 0 })))
    return waiting > 0 ? `${waiting} records of the log are not projected yet` : undefined
  }
  await until(look, bounds, time)
}

/** Resolves when every batch is folded. Throws `NotProjected`. */
export async function untilFolded(
  { tables, databases }: Shard,
  bounds: ProjectedBounds,
  time?: RetryDependencies,
): Promise<void> {
  const wanted = await readUnfolded(tables, databases)
  const look = async () => {
    const first = new Map((await readUnfolded(tables, databases)).map(run => [run.projector, run.first]))
    const isWaiting = wanted.some(({ projector, last }) => (first.get(projector) ?? last + 1) <= last)
    return isWaiting ? 'some batches are not folded yet' : undefined
  }
  await until(look, bounds, time)
}

function until(
  look: () => Promise<string | undefined>,
  { msMax, wayOn }: ProjectedBounds,
  time?: RetryDependencies,
): Promise<void> {
  const isRetryable = (error: unknown) => error instanceof NotProjected
  async function looked(): Promise<void> {
    const missing = await look()
    if (missing !== undefined) throw new NotProjected(`${missing}${wayOn}`)
  }
  return retry(looked, { isRetryable, msMax, pauseMsMin: 250, pauseMsMax: 2_000 }, time)
}
