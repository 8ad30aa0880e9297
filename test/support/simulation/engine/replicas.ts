/**
 * The tables of the fold on several replicas, as ClickHouse's source has it for `replicatedSettings` (ReplicatedMergeTreeSink.cpp):
 * - A part is committed first, and visible once a majority of the replicas has it. Nothing bounds the time in between, and it
 *   does not matter whether anything still waits for it.
 * - Until then the table refuses other inserts: when they begin to write, even if they have nothing to write, and again when they
 *   commit. What a statement reads is from before its first check, and a majority may get a part in between.
 * - The statement waits for the majority, but only for a while. Then its caller is told that the outcome is unknown, or that
 *   the time of the statement is over.
 */

import { type Statement, TablesError } from '../../../../services/tables/port.ts'
import { chance, intBetween, pick, type Random } from '../../runner/random.ts'
import type { VirtualTime } from '../virtual-time.ts'
import { targetOf, type WriteKind } from './statement-kinds.ts'

export interface ReplicaSettings {
  /** Whether a new leader's look, whether anything is undecided (`untilDecidedStatement`), is refused if something is. */
  isLookRefused: boolean
  /** Whether a statement that waits for the majority ends with its time. Versions of ClickHouse differ in this. */
  isWaitCancelled: boolean
  /** Share of parts for which a majority takes long, until the changes are over. */
  lateShare: number
}

export interface Replicas {
  /** A statement that has read begins to write. Rejects if a part is undecided. */
  check(writing: { statement: Statement; kind: WriteKind }): Promise<void>
  /** A fold worker reads. Throws if the replica lacks rows that a majority has. */
  read(): void
  /** Commits a part. `publish` makes it visible, when a majority has it. Rejects if that takes longer than the caller waits. */
  commit(part: { statement: Statement; publish: () => Promise<void>; msLeft: number }): Promise<void>
}

export interface ReplicasDependencies {
  settings: ReplicaSettings
  time: VirtualTime
  random: Random
  isStormy: () => boolean
  /** Marks the work as a statement that may still make something visible. */
  whileBusy: (work: () => Promise<void>) => Promise<void>
}

// As in `replicatedSettings`.
const quorumTimeoutMs = 20_000
// How often ClickHouse looks whether the time of a waiting statement is over.
const lookMs = 1_000

export function drawReplicas(random: Random, isLookRefused: boolean): ReplicaSettings {
  return { isLookRefused, isWaitCancelled: chance(random, 0.5), lateShare: pick(random, [0.3, 0.6]) }
}

export function createReplicas(dependencies: ReplicasDependencies): Replicas {
  const { settings, time, random, isStormy, whileBusy } = dependencies
  const isLate = () => isStormy() && chance(random, settings.lateShare)
  /** Of each table: how to decide a part before its time. */
  const undecided = new Map<string, Set<() => Promise<void>>>()

  function undecidedOf(statement: Statement): Set<() => Promise<void>> {
    const table = targetOf(statement)
    const parts = undecided.get(table) ?? new Set()
    undecided.set(table, parts)
    return parts
  }

  function refuseIfUndecided(statement: Statement): void {
    if (undecidedOf(statement).size > 0) {
      throw refusal('UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE', 'an earlier insert is undecided')
    }
  }

  return {
    async check({ statement, kind }) {
      if (kind === 'until decided' && !settings.isLookRefused) return
      // A majority gets the part at the very moment at which this statement has read without it.
      if (chance(random, 0.25)) for (const decide of undecidedOf(statement)) await decide()
      refuseIfUndecided(statement)
    },

    read() {
      if (isLate() && chance(random, 0.1)) throw refusal('REPLICA_IS_NOT_IN_QUORUM', 'the replica is behind')
    },

    async commit({ statement, publish, msLeft }) {
      refuseIfUndecided(statement)
      const parts = undecidedOf(statement)
      const quorumMs = drawQuorumMs(random, isLate())
      const early = new AbortController()
      const decided = whileBusy(async () => {
        await time.sleep(quorumMs, early.signal).catch(() => {})
        await publish()
        parts.delete(decide)
      })
      const decide = () => {
        early.abort()
        return decided
      }
      parts.add(decide)
      const waitMs = settings.isWaitCancelled
        ? Math.min(quorumTimeoutMs, Math.max(0, msLeft) + lookMs)
        : quorumTimeoutMs
      if (quorumMs <= waitMs) return decided
      await time.sleep(waitMs)
      if (!parts.has(decide)) return
      throw waitMs < quorumTimeoutMs
        ? refusal('TIMEOUT_EXCEEDED', 'ended for its time')
        : refusal('UNKNOWN_STATUS_OF_INSERT', 'no majority has the rows yet')
    },
  }
}

/** How long it takes until a majority of the replicas has a part, ms. */
function drawQuorumMs(random: Random, isLate: boolean): number {
  if (!isLate) return intBetween(random, 0, 60)
  return chance(random, 0.3) ? intBetween(random, 60, 5_000) : intBetween(random, 5_000, 60_000)
}

function refusal(type: string, message: string): TablesError {
  return new TablesError(message, { retryable: true, type })
}
