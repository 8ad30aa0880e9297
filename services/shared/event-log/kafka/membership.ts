/**
 * A reader's membership in its group: the member, what it holds, and whether both live. What fails in one ends all.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Bell, createBell } from '../../bell.ts'
import { type Delivery, type PollBounds, type Position, SupersededAssignment } from '../port.ts'
import { type Assignment, createAssignments, noteCommitted } from './assignment.ts'
import { createKafka, isOutage } from './client.ts'
import { createMember, type MemberSettings } from './consumer.ts'
import { type OffsetRange, partitionName, readRanges, readStarts } from './offsets.ts'
import { createVitals } from './vitals.ts'

export interface MembershipSettings extends MemberSettings {
  bufferRecordsMax: number
  bufferBytesMax: number
  callerMsMax: number
}

export interface Membership {
  /** Joins, and resolves when the partitions' positions are known. Rejects with the reason where that fails. */
  start(): Promise<void>
  present(): Assignment
  take(bounds: PollBounds): Delivery
  /** Waits until there is more to take, something else changed, or the time is over. */
  change(msMax: number, signal: AbortSignal): Promise<void>
  /** The present assignment, once it is read. Rejects where that takes longer. */
  reading(msMax: number): Promise<Assignment>
  /** Commits under the assignment of this name; throws `SupersededAssignment` where it is not the present one. */
  commit(name: string, positions: readonly Position[]): Promise<void>
  ranges(): Promise<Map<string, OffsetRange>>
  /** Throws the reason where the membership has ended for good. */
  check(): void
  /** Whether the group counts on this member. */
  isMember(): boolean
  /** Runs a call of the caller, who is not away meanwhile. */
  during<T>(call: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

// A join waits for the other members, which may be writing a batch.
const joinMsMax = 90_000
const attemptPauseMs = 500
// How often a wait looks whether the cluster is still there.
const lookMsMax = 1_000

export function createMembership(
  settings: MembershipSettings,
  { logger, monotonicMs }: { logger: Logger; monotonicMs: () => number },
): Membership {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { admin, names: settings }
  const bells = new Set<Bell>()
  const vitals = createVitals({ ...settings, monotonicMs, onFailure: giveUp })
  const assignments = createAssignments({
    ...settings,
    member: () => member,
    readStarts: partitions => persistently(() => readStarts(cluster, settings.groupId, partitions)),
    readRanges: () => persistently(() => readRanges(cluster)),
    onChange() {
      for (const bell of bells) bell.ring()
    },
    onFailure: vitals.fail,
    logger,
  })
  const events = { ...assignments, onAlive: vitals.onAlive, onFailure: vitals.fail }
  const member = createMember({ kafka, settings, events, logger, monotonicMs })

  /** Others may have the partitions at once: nothing that is still under way can be committed. */
  function giveUp(error: Error): void {
    logger.error({ error: error.message }, 'the reader gives up its partitions')
    assignments.onLeave()
    member.close().catch(cause => logger.warn({ error: String(cause) }, 'the group was not left in order'))
  }

  /** Tries again while the cluster is away, for as long as it may be. */
  async function persistently<T>(work: () => Promise<T>): Promise<T> {
    const deadline = monotonicMs() + settings.outageMsMax
    for (;;) {
      vitals.check()
      try {
        return await work()
      } catch (cause) {
        if (!isOutage(cause) || monotonicMs() > deadline) throw cause
      }
      await sleep(attemptPauseMs)
    }
  }

  async function change(msMax: number, signal: AbortSignal): Promise<void> {
    const bell = createBell()
    bells.add(bell)
    try {
      await bell.wait(Math.min(msMax, lookMsMax), signal)
    } finally {
      bells.delete(bell)
    }
  }

  async function reading(msMax: number): Promise<Assignment> {
    const deadline = monotonicMs() + msMax
    for (;;) {
      vitals.check()
      const assignment = assignments.present()
      if (assignment.isReading) return assignment
      const leftMs = deadline - monotonicMs()
      if (leftMs <= 0) throw new Error(`the group ${settings.groupId} gave no partitions for ${msMax} ms`)
      await change(leftMs, new AbortController().signal)
    }
  }

  return {
    async start() {
      await admin.connect()
      await member.start()
      await reading(joinMsMax)
    },
    present: assignments.present,
    take: assignments.take,
    change,
    reading,

    async commit(name, positions) {
      const deadline = monotonicMs() + settings.outageMsMax
      for (;;) {
        vitals.check()
        // A generation is only as good as the moment: it is looked at again before each attempt.
        const assignment = assignments.present()
        if (assignment.name !== name) throw superseded(name, assignment)
        const news = positions.filter(position => isNews(assignment, position))
        if (news.length === 0) return
        try {
          await member.commit(news)
          noteCommitted(assignment, news)
          return
        } catch (cause) {
          if (isFenced(cause)) throw superseded(name, assignments.present(), cause)
          if (!isOutage(cause) || monotonicMs() > deadline) throw cause
        }
        await sleep(attemptPauseMs)
      }
    },

    ranges: () => readRanges(cluster),
    check: vitals.check,
    isMember: vitals.isMember,
    during: vitals.during,
    async close() {
      vitals.close()
      assignments.onLeave()
      await member.close()
      await admin.disconnect()
    },
  }
}

/** Whether the position is ahead of what is committed: a commit never moves one back. */
function isNews({ partitions }: Assignment, position: Position): boolean {
  const held = partitions.get(partitionName(position))
  return held !== undefined && position.next > held.committed
}

/** Whether the group has gone on to another generation, or forgotten this member. */
function isFenced(cause: unknown): boolean {
  return cause instanceof Error && 'type' in cause && fencedTypes.has(String(cause.type))
}

const fencedTypes = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS'])

function superseded(name: string, present: Assignment, cause?: unknown): SupersededAssignment {
  return new SupersededAssignment(`the assignment ${name} is superseded by ${present.name}`, { cause })
}
