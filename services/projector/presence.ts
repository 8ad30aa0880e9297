/**
 * Notes that the partitions of this projector were read to their end, so that a later start knows how long the projectors
 * were away (absence.ts), and what the tables have (recorded-positions.ts). A steady stream never stands at its end, so the end of
 * some moment counts, once it is reached.
 */
import type { PartitionLag } from '../shared/event-log/port.ts'
import type { ProjectorNote } from './projector-log.ts'

export interface PresenceDependencies {
  lag: () => Promise<PartitionLag[]>
  write: (note: ProjectorNote) => Promise<void>
  /** Reading the lag or writing the note failed. It is tried again. */
  onFailure: (error: Error) => void
  /** The consumer group whose positions they are. */
  group: string
  /** How often a note is written, ms. */
  intervalMs: number
  monotonicMs: () => number
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
  write,
  onFailure,
  group,
  intervalMs,
  monotonicMs,
}: PresenceDependencies): Presence {
  let target: { ends: ReadonlyMap<string, number>; at: number } | undefined
  let nextAt = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    const at = monotonicMs()
    const present = await lag()
    const isSame = target !== undefined && present.every(one => target?.ends.has(nameOf(one)))
    // After a rebalance there are other partitions, so it begins again.
    if (!target || !isSame) target = { ends: new Map(present.map(one => [nameOf(one), one.end])), at }
    const { ends } = target
    if (!present.every(one => one.committed >= (ends.get(nameOf(one)) ?? 0))) return
    const msAgo = Math.round(monotonicMs() - target.at)
    const positions = present.map(({ topic, partition, committed }) => ({
      topic,
      partition,
      next: committed,
    }))
    await write({ kind: 'present', detail: { partitions: present.map(nameOf), msAgo, positions, group } })
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

function nameOf({ topic, partition }: PartitionLag): string {
  return `${topic}/${partition}`
}
