/**
 * The stamp floor: what makes the stamps of changes, and the watermark of lists, independent of ClickHouse's clock.
 *
 * A poller sends a list's watermark as its next `updated_since`. So a change that a list does not have must never get a
 * stamp below that list's watermark. ClickHouse's clock alone cannot promise that. If it steps back by d, the changes of the
 * next d are stamped below watermarks that pollers already have. If it steps forward while a fold runs, a list may get a
 * watermark above the stamp of rows that are not visible yet.
 *
 * Therefore the leader of the fold writes the floor: the highest moment that ClickHouse's clock has shown it. It does so
 * only while none of its statements runs that stamps rows of the read tables. (A campaign that is folded alone is only staged,
 * and a later statement stamps it: set-aside.ts.) Two rules follow:
 * - A stamp is `greatest(clock, floor)`. So a stamp is never below a floor that was written before its statement.
 * - A watermark is `least(clock - commit horizon, floor)`, and the floor is read before the rows of the list are.
 * Take a list with the floor M, and a change that it does not have. The change's statement was not running when M was
 * written, unless its rows were in doubt. If it started later, its stamp is at least M. If its rows were in doubt, they get a
 * new stamp, which is at least M. Either way the next poll finds the change. A watermark that is too low does no harm: a poll
 * then delivers a change again.
 *
 * The floor also stands still: while no process leads the fold, and while statements run. Nothing else becomes visible
 * then. It is on disk, so it outlives every process.
 *
 * If the clock steps back, stamps stay at the floor until the clock has passed it. The floor then grows by a millisecond for each
 * statement, because caches tell two states of a campaign apart by their stamps. So each poll until then also delivers what
 * changed since the step. The same happens, for as long as the clock was ahead, after a step far forward that is undone:
 * nothing is lost, but each poll delivers everything that changed since the step.
 */
import type { Sleep } from '../../shared/sleep.ts'
import type { Databases, Statement, Tables } from '../../shared/tables/port.ts'
import { readSql } from '../../shared/tables/read-sql.ts'
import { type FoldStep, fill } from './fold-statements.ts'

/** ClickHouse's clock moved by another time than passed, or is behind the stamps. */
export interface ClockStep {
  /** By how much it moved too far, ms. Negative: it stepped back. */
  stepMs: number
  /** How far it is behind the highest stamp, ms. */
  behindMs: number
}

export interface StampFloorDependencies {
  tables: Pick<Tables, 'rows' | 'run'>
  databases: Databases
  /** The floor is written at most this often, ms. */
  everyMs: number
  /** A statement whose end was not seen has ended after this time, ms. */
  settleMs: number
  sleep: Sleep
  monotonicMs: () => number
  /** Reports each step once. */
  onClockStep: (step: ClockStep) => void
}

export interface StampFloor {
  /** Writes the floor if the last time is long enough ago, or if the clock is behind it. False if another worker leads. Must not be called while a statement of this fold worker stamps rows. */
  advance(step: () => FoldStep): Promise<boolean>
  /** As `advance`, but always writes it. For a new leader. */
  begin(step: () => FoldStep): Promise<boolean>
}

interface ClockRow {
  now: number
  floor: number
  /** Of the leader. */
  epoch: string
  holder: string
}

const file = readSql('advance-stamp-floor', import.meta.url)
// Less is the rate correction of a time service, or the difference between the replicas of a shard.
const stepMsMin = 100

/** Writes the floor. Writes nothing if another fold worker leads. */
export function advanceStampFloorStatement(databases: Databases, step: FoldStep): Statement {
  return { query: fill(file, databases, step), query_params: { holder: step.term.holder } }
}

/** One row: the leader, and ClickHouse's clock and the floor, both Unix ms. The floor is 0 if none was written. */
export function stampClockStatement({ model }: Databases): Statement {
  return {
    query: `WITH (SELECT max((epoch, holder)) FROM ${model}.fold_epochs) AS leader
            SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS now, toUnixTimestamp64Milli(max(reached)) AS floor,
              toString(leader.1) AS epoch, leader.2 AS holder
            FROM ${model}.stamp_floor`,
  }
}

export function createStampFloor(dependencies: StampFloorDependencies): StampFloor {
  const { tables, databases, everyMs, settleMs, sleep, monotonicMs, onClockStep } = dependencies
  let advancedAt = Number.NEGATIVE_INFINITY
  let isBehind = false
  let seen: { now: number; asked: number; answered: number } | undefined

  async function watchClock(): Promise<ClockRow> {
    const asked = monotonicMs()
    const [row] = await tables.rows<ClockRow>(stampClockStatement(databases))
    const answered = monotonicMs()
    if (row === undefined) throw new Error('ClickHouse told no time')
    const behindMs = Math.max(0, row.floor - row.now)
    isBehind = behindMs > 0
    const stepMs = seen === undefined ? -behindMs : stepOf(seen, { now: row.now, asked, answered })
    if (Math.abs(stepMs) >= stepMsMin) onClockStep({ stepMs, behindMs })
    seen = { now: row.now, asked, answered }
    return row
  }

  async function begin(nextStep: () => FoldStep): Promise<boolean> {
    const { epoch, holder } = await watchClock()
    const step = nextStep()
    // An idle worker learns here that it lost the lead. Otherwise the floor, and every watermark, would stand still.
    if (BigInt(epoch) !== step.term.epoch || holder !== step.term.holder) return false
    try {
      await tables.run(advanceStampFloorStatement(databases, step))
    } catch (error) {
      // A floor that is written later must not be above the stamp of a statement that started before.
      await sleep(settleMs)
      throw error
    }
    advancedAt = monotonicMs()
    return true
  }

  return {
    begin,
    async advance(step) {
      return isBehind || monotonicMs() - advancedAt >= everyMs ? begin(step) : true
    },
  }
}

/** By how much the clock moved too far between two answers; 0 if the time that passed can explain it. */
function stepOf(
  before: { now: number; asked: number; answered: number },
  after: { now: number; asked: number; answered: number },
): number {
  const movedMs = after.now - before.now
  const atLeast = after.asked - before.answered
  const atMost = after.answered - before.asked
  if (movedMs < atLeast) return Math.round(movedMs - atLeast)
  return movedMs > atMost ? Math.round(movedMs - atMost) : 0
}
