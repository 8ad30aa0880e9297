/** Waits until everything that was in the log at the start of a purge is projected: only then the tables know what was deleted. */

import type { PartitionLag } from '../log/port.ts'
import { readUnfolded } from '../projector/fold/fold-progress.ts'
import type { Sleep } from '../runtime/sleep.ts'
import type { Shard } from '../tables/port.ts'

export interface CaughtUpDependencies {
  lag: () => Promise<PartitionLag[]>
  shards: readonly Shard[]
  /** How long to wait, ms. */
  msMax: number
  monotonicMs: () => number
  sleep: Sleep
}

const lookMs = 250

/** Throws an `Error` that says what is missing if that takes longer than `msMax`. Later events are not waited for. */
export async function untilCaughtUp(dependencies: CaughtUpDependencies): Promise<void> {
  const { lag, shards } = dependencies
  const ends = new Map((await lag()).map(at => [`${at.topic}/${at.partition}`, at.end]))
  await until(dependencies, async () => {
    const waiting = (await lag()).reduce((sum, { topic, partition, committed }) => {
      return sum + Math.max(0, (ends.get(`${topic}/${partition}`) ?? 0) - committed)
    }, 0)
    return waiting === 0 ? undefined : `${waiting} records of the log are not projected yet`
  })
  for (const shard of shards) await untilFolded(dependencies, shard)
}

async function untilFolded(dependencies: CaughtUpDependencies, { tables, databases }: Shard): Promise<void> {
  const wanted = await readUnfolded(tables, databases)
  await until(dependencies, async () => {
    const first = new Map((await readUnfolded(tables, databases)).map(run => [run.projector, run.first]))
    const waiting = wanted.filter(({ projector, last }) => (first.get(projector) ?? last + 1) <= last)
    return waiting.length === 0 ? undefined : 'some batches are not folded yet'
  })
}

async function until(
  { msMax, monotonicMs, sleep }: CaughtUpDependencies,
  look: () => Promise<string | undefined>,
): Promise<void> {
  const deadline = monotonicMs() + msMax
  for (;;) {
    const lookedAt = monotonicMs()
    const missing = await look()
    if (missing === undefined) return
    if (monotonicMs() > deadline) {
      throw new Error(`${missing}: let the projector get to the end of the log, then run the purge again`)
    }
    // A look that takes long reads much, so it is not repeated all the time.
    await sleep(Math.max(lookMs, monotonicMs() - lookedAt))
  }
}
