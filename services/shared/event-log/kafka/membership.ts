/** A reader's membership in its group: the member, its assignment, and its liveness. A failure in one ends all. */
import type { Logger } from 'pino'
import { createNotifier, type Notifier } from '../../notifier.ts'
import { retry } from '../../retry.ts'
import { type Delivery, type PollBounds, type Position, SupersededAssignment } from '../port.ts'
import { type Assignment, createAssignments, noteCommitted } from './assignment.ts'
import { createKafka, isOutage } from './client.ts'
import { createMember, type MemberSettings } from './consumer.ts'
import { createLiveness } from './liveness.ts'
import { createLooks } from './looks.ts'
import {
  behindIn,
  type FindBehind,
  type OffsetRange,
  partitionName,
  readCommitted,
  readRanges,
  readStarts,
  type TopicPartition,
} from './offsets.ts'
import { countRejects } from './reject-search.ts'

export interface MembershipSettings extends MemberSettings {
  bufferRecordsMax: number
  bufferBytesMax: number
  callerMsMax: number
}

export interface MembershipDependencies {
  logger: Logger
  monotonicMs: () => number
  findBehind?: FindBehind | undefined
}

export interface Membership {
  /**
   * Joins the group, and resolves when the positions of the partitions are known. Rejects with the reason of a
   * failure.
   */
  start(): Promise<void>
  present(): Assignment
  take(bounds: PollBounds): Delivery
  /** Waits until there is more to take, something else changed, or the time is over. */
  change(msMax: number, signal: AbortSignal): Promise<void>
  /** The current assignment, when it can be read. Rejects if that takes longer. */
  reading(msMax: number): Promise<Assignment>
  /** Commits under the assignment of this name. Throws `SupersededAssignment` if it is not the current one. */
  commit(name: string, positions: readonly Position[]): Promise<void>
  /** Tries again while the cluster is away, as a commit does. */
  ranges(): Promise<Map<string, OffsetRange>>
  /** Messages of the reject topic. Tries again as `ranges` does. */
  rejectCount(): Promise<number>
  /** Throws the reason if the membership has ended for good. */
  check(): void
  /** Whether the group counts on this member. */
  isMember(): boolean
  /** Runs a call of the caller. The caller is not absent meanwhile. */
  during<T>(call: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

// A join waits for the other members, which may be writing a batch.
const joinMsMax = 90_000
// The owner's own look (`findBehind`) may read a month of its records, just when these were restored.
const startMsMax = 900_000
const attemptPauseMs = 500
// How often a waiting call checks whether the cluster is still there.
const lookMsMax = 1_000

export function createMembership(
  settings: MembershipSettings,
  { logger, monotonicMs, findBehind }: MembershipDependencies,
): Membership {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { admin, names: settings }
  const looks = findBehind && createLooks(findBehind, monotonicMs)
  const notifiers = new Set<Notifier>()
  const liveness = createLiveness({ ...settings, monotonicMs, onFailure: giveUp })
  const assignments = createAssignments({
    ...settings,
    member: () => member,
    readStarts: startsOf,
    readRanges: () => withRetry(() => readRanges(cluster)),
    onChange() {
      for (const notifier of notifiers) notifier.notify()
    },
    onFailure: liveness.fail,
    logger,
  })
  const events = { ...assignments, onAlive: liveness.onAlive, onFailure: liveness.fail }
  const member = createMember({ kafka, settings, events, logger, monotonicMs })

  /** Other members may get the partitions at once, so nothing that is still running can be committed. */
  function giveUp(error: Error): void {
    logger.error({ error: error.message }, 'the reader gives up its partitions')
    assignments.onLeave()
    member.close().catch(cause => logger.warn({ error: String(cause) }, 'leaving the group failed'))
  }

  function mayPass(error: unknown): boolean {
    const isFinal = error === liveness.failure() || error instanceof SupersededAssignment
    return !isFinal && isOutage(error)
  }

  /** Tries again while the cluster is away, for at most `outageMsMax`. Stops if the reader is no longer alive. */
  function withRetry<T>(work: () => Promise<T>): Promise<T> {
    const policy = {
      isRetryable: mayPass,
      msMax: settings.outageMsMax,
      pauseMsMin: attemptPauseMs,
    }
    return retry(
      () => {
        liveness.check()
        return work()
      },
      policy,
      { monotonicMs },
    )
  }

  /**
   * The look of the owner is not part of a retry. It waits for the owner's own services, for longer than Kafka may be away. Then the
   * first answer of Kafka that passes would be final.
   */
  async function startsOf(partitions: readonly TopicPartition[]): Promise<Map<string, number>> {
    const { groupId } = settings
    const committed = await withRetry(() => readCommitted(cluster, groupId))
    const behind = await behindIn(partitions, committed, looks?.find)
    return withRetry(() => readStarts(cluster, groupId, partitions, { committed, behind }))
  }

  /** Commits the positions that are ahead of the committed ones, once. Throws `SupersededAssignment`. */
  async function commitOnce(name: string, positions: readonly Position[]): Promise<void> {
    // The assignment may have changed since the last attempt.
    const assignment = assignments.present()
    if (assignment.name !== name) throw superseded(name, assignment)
    const ahead = positions.filter(position => isAhead(assignment, position))
    if (ahead.length === 0) return
    try {
      await member.commit(ahead)
      noteCommitted(assignment, ahead)
    } catch (cause) {
      throw isFenced(cause) ? superseded(name, assignments.present(), cause) : cause
    }
  }

  async function change(msMax: number, signal: AbortSignal): Promise<void> {
    const notifier = createNotifier()
    notifiers.add(notifier)
    try {
      await notifier.wait(Math.min(msMax, lookMsMax), signal)
    } finally {
      notifiers.delete(notifier)
    }
  }

  async function until(isDone: (assignment: Assignment) => boolean, msMax: number): Promise<Assignment> {
    const deadline = monotonicMs() + msMax
    for (;;) {
      liveness.check()
      const assignment = assignments.present()
      if (isDone(assignment)) return assignment
      const leftMs = deadline - monotonicMs()
      if (leftMs <= 0) throw new Error(lateText(msMax))
      await change(leftMs, new AbortController().signal)
    }
  }

  function lateText(msMax: number): string {
    const { groupId } = settings
    return looks?.isUnderWay()
      ? `the look for what the tables lack of what the group ${groupId} has read did not end within ${msMax} ms: ClickHouse is slow, or away`
      : `the group ${groupId} gave no partitions for ${msMax} ms`
  }

  const reading = (msMax: number) => until(({ isReading }) => isReading, msMax)

  return {
    async start() {
      await admin.connect()
      await member.start()
      await until(({ isJoined }) => isJoined, joinMsMax)
      await reading(startMsMax)
    },
    present: assignments.present,
    take: assignments.take,
    change,
    reading,

    commit: (name, positions) => withRetry(() => commitOnce(name, positions)),

    ranges: () => withRetry(() => readRanges(cluster)),
    rejectCount: () => withRetry(() => countRejects(cluster)),
    check: liveness.check,
    isMember: liveness.isMember,
    during: liveness.during,
    async close() {
      liveness.close()
      assignments.onLeave()
      await member.close()
      await admin.disconnect()
    },
  }
}

/** Whether the position is ahead of the committed one. A commit never moves a position back. */
function isAhead({ partitions }: Assignment, position: Position): boolean {
  const held = partitions.get(partitionName(position))
  return held !== undefined && position.next > held.committed
}

/** Whether the group has a newer generation, or has removed this member. */
function isFenced(cause: unknown): boolean {
  return cause instanceof Error && 'type' in cause && fencedTypes.has(String(cause.type))
}

const fencedTypes = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS'])

function superseded(name: string, present: Assignment, cause?: unknown): SupersededAssignment {
  return new SupersededAssignment(`the assignment ${name} is superseded by ${present.name}`, { cause })
}
