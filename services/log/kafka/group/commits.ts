/**
 * What a reader stores in its consumer group, positions and the remembered watermark, and how that is read. One commit follows the other,
 * so that a later one never has an older position or watermark.
 */
import { type Position, partitionName, type RememberedWatermark, SupersededAssignment } from '../../port.ts'
import { topicName } from '../client.ts'
import type { Cluster, TopicPartition } from '../offsets.ts'
import { type Assignment, type HeldPartition, noteCommitted } from './assignment.ts'
import type { Member } from './consumer.ts'

export interface Committer {
  member: Pick<Member, 'commit'>
  present: () => Assignment
  /** Tries again while the cluster is away. */
  withRetry: <T>(work: () => Promise<T>) => Promise<T>
}

export function createCommits({ member, present, withRetry }: Committer) {
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(() => withRetry(work))
    last = done.catch(() => undefined)
    return done
  }

  /** In its turn, if this assignment is the present one. It may have changed since the last attempt. */
  const underName = (name: string, work: (assignment: Assignment) => Promise<void>): Promise<void> =>
    inTurn(async () => {
      const assignment = present()
      if (assignment.name !== name) throw superseded(name, assignment)
      await work(assignment)
    })

  async function commitUnder(
    assignment: Assignment,
    positions: readonly Position[],
    watermark: RememberedWatermark,
  ): Promise<void> {
    try {
      await member.commit(positions, watermark)
    } catch (cause) {
      throw isFenced(cause) ? superseded(assignment.name, present(), cause) : cause
    }
    if (present() !== assignment) throw superseded(assignment.name, present())
  }

  return {
    /** Runs the work behind the commits that are under way. */
    inTurn,

    /** Commits those of the positions that are ahead of the group's. Throws `SupersededAssignment`. */
    commit: (name: string, positions: readonly Position[]): Promise<void> =>
      underName(name, async assignment => {
        const ahead = positions.filter(position => isAhead(assignment, position))
        if (ahead.length > 0) await commitUnder(assignment, ahead, assignment.watermark)
        noteCommitted(assignment, positions)
      }),

    /** Commits what the group has of a partition once more, because kafkajs may have replaced it. Throws `SupersededAssignment`. */
    restate: (name: string, held: HeldPartition): Promise<void> =>
      underName(name, assignment => {
        const { topic, partition, atGroup: next } = held
        return commitUnder(assignment, [{ topic, partition, next }], assignment.watermark)
      }),

    /** Commits the position of the fold's partition as it is, with the watermark. Throws `SupersededAssignment`. */
    rememberWatermark: (watermark: number, shown = 0): Promise<number> =>
      inTurn(async () => {
        const assignment = present()
        const held = assignment.partitions.get(partitionName(foldPartition))
        if (!held || !assignment.isReading)
          throw new SupersededAssignment(`this reader does not hold ${partitionName(foldPartition)}`)
        const before = assignment.watermark
        const highest = higher({ watermark, shown }, before)
        if (highest.watermark > before.watermark || highest.shown > before.shown) {
          await commitUnder(assignment, [{ ...foldPartition, next: held.atGroup }], highest)
          assignment.watermark = highest
        }
        return highest.watermark
      }),
  }
}

/** A commit never moves the group back. */
function isAhead({ partitions }: Assignment, position: Position): boolean {
  const held = partitions.get(partitionName(position))
  return held !== undefined && position.next > held.atGroup
}

/** Whether the group has a newer generation, or has removed this member. */
function isFenced(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  return ('type' in cause && fencedTypes.has(String(cause.type))) || isFenced(cause.cause)
}

const fencedTypes = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS'])

function superseded(name: string, present: Assignment, cause?: unknown): SupersededAssignment {
  return new SupersededAssignment(`the assignment ${name} is superseded by ${present.name}`, { cause })
}

/*
 * The watermark that a group remembers: the metadata of its committed offset in the partition of the fold. Each commit there carries
 * it, because a commit replaces the metadata, too. A reader that gets the partition goes on from what it finds there.
 */

/** The reader that holds it leads the fold. */
export const foldPartition = { topic: 'campaigns', partition: 0 } as const satisfies TopicPartition

/** The higher of each. */
export function higher(one: RememberedWatermark, other: RememberedWatermark): RememberedWatermark {
  return {
    watermark: Math.max(one.watermark, other.watermark),
    shown: Math.max(one.shown, other.shown),
  }
}

/** The metadata for what is remembered. */
export function metadataOf({ watermark, shown }: RememberedWatermark): string {
  return `watermark=${watermark} shown=${shown}`
}

/** What a metadata remembers; nothing after a commit by another tool. */
export function watermarkIn(metadata: string | null | undefined): RememberedWatermark {
  const [, watermark = 0, shown = 0] = /^watermark=(\d+) shown=(\d+)$/.exec(metadata ?? '') ?? []
  return { watermark: Number(watermark), shown: Number(shown) }
}

/** What the group remembers. */
export async function readWatermark(
  { admin, names }: Cluster,
  groupId: string,
): Promise<RememberedWatermark> {
  const { topic, partition } = foldPartition
  const [offsets] = await admin.fetchOffsets({ groupId, topics: [topicName(names, topic)] })
  return watermarkIn(offsets?.partitions.find(found => found.partition === partition)?.metadata)
}
