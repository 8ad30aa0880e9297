/** A reader's membership in its group: the member, its assignment, and its liveness. A failure in one ends all. */
import type { Logger } from 'pino'
import { createNotifier, type Notifier } from '../../runtime/notifier.ts'
import { retry } from '../../runtime/retry.ts'
import {
  type Delivery,
  type FindStarts,
  type PollBounds,
  type Position,
  partitionName,
  type RememberedWatermark,
  SupersededAssignment,
} from '../port.ts'
import { type Assignment, type AssignmentStarts, createAssignments, noteCommitted } from './assignment.ts'
import { createKafka, isOutage, logName } from './client.ts'
import { createMember, type MemberSettings } from './consumer.ts'
import { createLiveness } from './liveness.ts'
import { checkStarts, type OffsetRange, outOfRange, readCommitted, readRanges } from './offsets.ts'
import { foldPartition, readWatermark } from './watermark.ts'

export interface MembershipSettings extends MemberSettings {
  bufferRecordsMax: number
  bufferBytesMax: number
  callerMsMax: number
}

export interface MembershipDependencies {
  logger: Logger
  monotonicMs: () => number
  starts?: FindStarts | undefined
}

export interface Membership {
  /**
   * Joins the group, and resolves when the positions of the partitions are known. Rejects with the reason of a
   * failure.
   */
  start(): Promise<void>
  present(): Assignment
  take(bounds: PollBounds): Delivery
  restart(): void
  /** Waits until there is more to take, something else changed, or the time is over. */
  change(msMax: number, signal: AbortSignal): Promise<void>
  /** The current assignment, when it can be read. Rejects if that takes longer. */
  reading(msMax: number): Promise<Assignment>
  /** Commits under the assignment of this name. Throws `SupersededAssignment` if it is not the current one. */
  commit(name: string, positions: readonly Position[]): Promise<void>
  /** See `EventReader`. Tries again as a commit does. */
  rememberWatermark(watermark: number, shown?: number): Promise<number>
  /** Tries again while the cluster is away, as a commit does. */
  ranges(): Promise<Map<string, OffsetRange>>
  /** The name of the log (port.ts). */
  log(): Promise<string>
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
// After a restore, finding the starts reads the batch log of a month.
const startMsMax = 900_000
const attemptPauseMs = 500
// How often a waiting call checks whether the cluster is still there.
const lookMsMax = 1_000

export function createMembership(
  settings: MembershipSettings,
  { logger, monotonicMs, starts }: MembershipDependencies,
): Membership {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { admin, names: settings }
  const notifiers = new Set<Notifier>()
  let lastCommit: Promise<unknown> = Promise.resolve()
  const liveness = createLiveness({ ...settings, monotonicMs, onFailure: giveUp })
  const assignments = createAssignments({
    ...settings,
    member: () => member,
    findStarts,
    readRanges: () => withRetry(() => readRanges(cluster)),
    beginAnew: (range, reason) => starts?.beginAnew(range, reason),
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

  const readLog = () => withRetry(async () => logName(settings, (await admin.describeCluster()).clusterId))

  /**
   * Where the partitions begin: where `starts` says, else at what the group has committed. `starts` waits for its own services, for longer
   * than Kafka may be away. So it is not part of a retry. The group's generation is new, so no other reader can change what the group
   * remembers any more. Throws `OffsetOutOfRange`.
   */
  async function findStarts(assignment: Assignment): Promise<AssignmentStarts> {
    const { groupId } = settings
    const held = [...assignment.partitions.values()]
    const committed = await withRetry(() => readCommitted(cluster, groupId))
    const watermark = await withRetry(() => readWatermark(cluster, groupId))
    const known = new Map([...committed].map(([name, next]) => [name, { next, lastAt: 0 }]))
    const before = await withRetry(() => readRanges(cluster))
    const found = starts
      ? await starts.find({
          log: await readLog(),
          assignment: assignment.name,
          partitions: [...before.values()].map(({ high, ...range }) => ({ ...range, end: high })),
          remembered: watermark,
        })
      : known
    const nextOf = new Map([...found].map(([name, { next }]) => [name, next]))
    const { ranges, faults } = await withRetry(() => checkStarts(cluster, held, nextOf))
    const isReplaced = (name: string) =>
      starts !== undefined && (nextOf.get(name) ?? 0) > (ranges.get(name)?.high ?? 0)
    const final = [...faults].filter(([name]) => !isReplaced(name))
    if (final.length > 0)
      throw outOfRange(
        groupId,
        final.map(([name, fault]) => `${name}: ${fault}`),
      )
    return {
      ranges,
      watermark,
      committed,
      starts: new Map([...found].filter(([name]) => !isReplaced(name))),
      replaced: new Map([...faults].filter(([name]) => isReplaced(name))),
    }
  }

  /** One commit after the other: the later one must not be that with the older position, or the older watermark. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = lastCommit.then(() => withRetry(work))
    lastCommit = done.catch(() => undefined)
    return done
  }

  /** Commits the positions that are ahead of the committed ones, once. Throws `SupersededAssignment`. */
  async function commitOnce(name: string, positions: readonly Position[]): Promise<void> {
    // The assignment may have changed since the last attempt.
    const assignment = assignments.present()
    if (assignment.name !== name) throw superseded(name, assignment)
    const ahead = positions.filter(position => isAhead(assignment, position))
    if (ahead.length > 0) await commitUnder(assignment, ahead, assignment.watermark)
    noteCommitted(assignment, positions)
  }

  /** Commits the position of the fold's partition as it is, with the watermark. Throws `SupersededAssignment`. */
  async function rememberOnce(watermark: number, shown: number): Promise<number> {
    const assignment = assignments.present()
    const held = assignment.partitions.get(partitionName(foldPartition))
    if (!held || !assignment.isReading) {
      throw new SupersededAssignment(`this reader does not hold ${partitionName(foldPartition)}`)
    }
    const before = assignment.watermark
    const highest = {
      watermark: Math.max(watermark, before.watermark),
      shown: Math.max(shown, before.shown),
    }
    if (highest.watermark > before.watermark || highest.shown > before.shown) {
      await commitUnder(assignment, [{ ...foldPartition, next: held.atGroup }], highest)
      assignment.watermark = highest
    }
    return highest.watermark
  }

  async function commitUnder(
    assignment: Assignment,
    positions: readonly Position[],
    watermark: RememberedWatermark,
  ): Promise<void> {
    const { name } = assignment
    try {
      await member.commit(positions, watermark)
    } catch (cause) {
      throw isFenced(cause) ? superseded(name, assignments.present(), cause) : cause
    }
    if (assignments.present() !== assignment) throw superseded(name, assignments.present())
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
      if (leftMs <= 0)
        throw new Error(
          `the group ${settings.groupId} gave no partitions for ${msMax} ms, or their positions cannot be read`,
        )
      await change(leftMs, new AbortController().signal)
    }
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
    restart: assignments.restart,
    change,
    reading,

    commit: (name, positions) => inTurn(() => commitOnce(name, positions)),
    rememberWatermark: (watermark, shown = 0) => inTurn(() => rememberOnce(watermark, shown)),

    ranges: () => withRetry(() => readRanges(cluster)),
    log: readLog,
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

/** Whether the position is ahead of the group's. A commit never moves the group back. */
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
