/**
 * Notes how far the partitions of this projector are read, also while nothing comes, so that a later start knows how long the projectors
 * were away (absence.ts). On a busy partition the lag is never zero. So it remembers the end of the partition at one moment, and notes the
 * time once that offset is read.
 */
import { type EventReader, partitionName } from '../../log/port.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Positions } from './positions.ts'

export interface PresenceDependencies
  extends Pick<EventReader, 'lag'>,
    Pick<Positions, 'noteRead'>,
    Pick<Runtime, 'monotonicMs' | 'now'> {
  /** Reading the lag or writing the note failed. It is tried again. */
  onFailure: (error: Error) => void
  /** How often it is noted, ms. */
  intervalMs: number
}

export interface Presence {
  /** The loop made a turn. Does the work beside the loop, and at most once a second. */
  turn(): void
  /** Waits for what is under way. */
  close(): Promise<void>
}

const lookMs = 1_000

export function createPresence({
  lag,
  noteRead,
  onFailure,
  intervalMs,
  monotonicMs,
  now,
}: PresenceDependencies): Presence {
  let target: { ends: ReadonlyMap<string, number>; at: number } | undefined
  let nextAt = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    const at = now()
    const present = await lag()
    const isSame = target !== undefined && present.every(one => target?.ends.has(partitionName(one)))
    // After a rebalance there are other partitions, so it begins again.
    if (!target || !isSame) target = { ends: new Map(present.map(one => [partitionName(one), one.end])), at }
    const { ends } = target
    if (!present.every(one => one.committed >= (ends.get(partitionName(one)) ?? 0))) return
    await noteRead(present.map(partitionName), target.at)
    target = undefined
    nextAt = monotonicMs() + intervalMs
  }

  return {
    turn() {
      if (looking || monotonicMs() < nextAt) return
      nextAt = monotonicMs() + lookMs
      looking = look()
        .catch(onFailure)
        .finally(() => {
          looking = undefined
        })
    },
    async close() {
      await looking
    },
  }
}
