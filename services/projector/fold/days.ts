/**
 * Writes the days of campaigns, the history for data teams (contracts/tables/0003-days.sql).
 *
 * The read table keeps only the latest row of a campaign, and the history the last one of each day. A row counts for the UTC day of its
 * stamp. So what changed has to be copied before a row of the next day can replace it.
 *
 * - While there is nothing to fold, it is copied at once. Else a pause of a hundred times as long follows each copy, and of half a minute at most:
 *   the line waits for it, and so do events.
 * - Shortly before a day ends, it is copied before each piece of a fold. And as long as there is something to copy, a statement that
 *   would stamp on the next day fails before it writes anything (`endsAt`). So it does not matter which clock is right.
 *
 * - A durable mark says up to which stamp everything is copied: the watermark of a moment between two statements. Every later stamp is at
 *   or above it, in the next generation as well. A new leader goes on from the mark before it folds.
 * - The history begins when the first backlog is folded, so that its first day has whole campaigns. During that day, the days before it
 *   are derived from the pledges.
 * - It may be interrupted at any point. Repeating a statement gives the same rows.
 */
import { dayMs } from '../../runtime/runtime.ts'
import type { Databases, Statement } from '../../tables/port.ts'
import { bounds, campaignsPerPiece, type FoldStep, fenceOf, fileStatement } from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import { type Line, runWhole, splitOrRefuse } from './line.ts'

interface DaysDependencies extends Pick<FoldWorkerDependencies, 'tables' | 'databases' | 'monotonicMs'> {
  line: Line
  nextStep: () => FoldStep
  /** The watermark that this leader wrote last, Unix ms. */
  reached: () => number
}

export type Days = ReturnType<typeof createDays>

/** Unix ms, and a day as days since 1970. 0: not yet. */
interface Marks {
  noted: number
  derived: number
  begun: number
}

// A new leader copies what changed in this time once more.
const recordEveryMs = 60_000
// A copy that took t is followed by a pause of 100 t, within a bound: it holds up one event in a hundred.
const notePauses = 100
const notePauseMsMax = 30_000
// A statement begins about a second after the watermark was written, or earlier.
const dayEndsMs = 5_000
// Each derivation reads most pledges, and the line waits for it. So the pause after it is this many times as long, within bounds.
const derivePauses = 200
const derivePauseMsMin = 10_000
const derivePauseMsMax = 1_800_000
// 1,024 pieces. A campaign that is too large even then has no derived days: what it has opens on the first day.
const deriveRefusalsMax = 5

export function createDays({ tables, databases, line, nextStep, monotonicMs, reached }: DaysDependencies) {
  let marks: Marks = { noted: 0, derived: 0, begun: 0 }
  /** Up to which stamp this leader has copied everything. It records it from time to time. */
  let noted = 0
  let hasNew = false
  /** How many campaigns were folded since the last derivation, at most. */
  let toDerive = 0
  let recordedAt = Number.NEGATIVE_INFINITY
  /** When the next copy may begin while folds go on, monotonic ms. */
  let noteFrom = Number.NEGATIVE_INFINITY
  /** When the next derivation may begin, monotonic ms. */
  let deriveFrom = Number.NEGATIVE_INFINITY

  async function note(): Promise<void> {
    // Before its own pieces, and for good: if one fails, the next leader finds out what is not copied.
    hasNew = false
    const until = reached()
    const startedAt = monotonicMs()
    const begun = marks.begun || dayOf(until)
    const copy = (file: 'note-days' | 'follow-days') =>
      line.runPieces({
        name: `the history (${file}.sql)`,
        pieces: 1,
        statementOf: step => fileStatement(file, databases, step, { since: noted, begun }),
        partsOf: splitOrRefuse(4),
      })
    if (marks.begun !== 0 && dayOf(noted) <= begun) await copy('follow-days')
    await copy('note-days')
    noted = until
    const endedAt = monotonicMs()
    noteFrom = endedAt + Math.min(notePauses * (endedAt - startedAt), notePauseMsMax)
    if (marks.begun === 0) await record({ ...marks, begun })
  }

  async function derive(): Promise<void> {
    const until = noted
    const { derived: since, begun } = marks
    const startedAt = monotonicMs()
    await line.runPieces({
      name: 'the days before the history (derive-days.sql)',
      pieces: Math.ceil(toDerive / campaignsPerPiece),
      statementOf: step => fileStatement('derive-days', databases, step, { since, begun }),
      partsOf: ({ refusals }) => (refusals < deriveRefusalsMax ? 4 : 0),
    })
    const endedAt = monotonicMs()
    const pauseMs = derivePauses * (endedAt - startedAt)
    deriveFrom = endedAt + Math.min(Math.max(pauseMs, derivePauseMsMin), derivePauseMsMax)
    toDerive = 0
    await record({ ...marks, derived: until })
  }

  async function record(next: Marks): Promise<void> {
    marks = { ...next, noted }
    await runWhole(line, recordNotedStatement(databases, nextStep(), marks))
    recordedAt = monotonicMs()
  }

  /** Whether a row may soon be stamped on the day after those that are not copied. */
  function dayEnds(): boolean {
    return hasNew && marks.begun !== 0 && dayOf(reached() + dayEndsMs) !== dayOf(noted)
  }

  async function keepUp({ isOfBacklog, isIdle }: { isOfBacklog: boolean; isIdle: boolean }): Promise<void> {
    const hasTurn = marks.begun === 0 ? !isOfBacklog : isIdle || monotonicMs() >= noteFrom
    if (hasNew && hasTurn) await note()
    if (hasNew || marks.begun === 0) return
    noted = Math.max(noted, reached())
    const isDue = marks.derived === 0 || monotonicMs() >= deriveFrom
    const isFirstDay = marks.derived === 0 || dayOf(noted) === marks.begun
    if (toDerive > 0 && isFirstDay && isDue && !isOfBacklog) await derive()
    const isNewDay = dayOf(noted) !== dayOf(marks.noted)
    if (isNewDay || monotonicMs() - recordedAt >= recordEveryMs) await record(marks)
  }

  return {
    /** A new leader: copies what the last one left. Runs before its first fold. */
    async begin(): Promise<void> {
      const [row] = await tables.rows<Marks & { unnoted: number; underived: number }>(
        marksStatement(databases),
      )
      if (row === undefined) throw new Error('ClickHouse did not return how far the history is written')
      const { unnoted, underived, ...found } = row
      marks = found
      noted = found.noted
      hasNew = unnoted > 0
      toDerive = underived
      if (found.begun !== 0) await keepUp({ isOfBacklog: true, isIdle: true })
    },
    /** Runs after each fold, also if there was nothing to fold. `campaigns`: how many it folded. */
    async keep({ campaigns, isOfBacklog }: { campaigns: number; isOfBacklog: boolean }): Promise<void> {
      hasNew ||= campaigns > 0
      toDerive += campaigns
      await keepUp({ isOfBacklog, isIdle: campaigns === 0 })
    },
    /** Runs before each piece of a fold, which may be the first one of a day. */
    async beforePiece(): Promise<void> {
      if (dayEnds()) await note()
    },
    /** Unix ms: no statement may stamp from here on, because a row of the day before is not copied. `undefined`: all are. */
    endsAt: () => (hasNew && marks.begun !== 0 ? (dayOf(noted) + 1) * dayMs : undefined),
  }
}

function dayOf(ms: number): number {
  return Math.floor(ms / dayMs)
}

/** One row: `Marks`, and how many campaigns have changed since each of the two, at most. The row without an id is of the removals. */
export function marksStatement({ base, read }: Databases): Statement {
  return {
    query: `WITH (SELECT max((noted, derived, begun)) FROM ${base}.history_marks) AS last
            SELECT toUnixTimestamp64Milli(last.1) AS noted, toUnixTimestamp64Milli(last.2) AS derived, toUInt32(last.3) AS begun,
              countIf(updated_at >= last.1) AS unnoted, countIf(updated_at >= last.2) AS underived
            FROM ${read}.campaigns WHERE campaign_id != ''`,
  }
}

/** Records how far the history is written. A new leader goes on from there; the views say that earlier days are final. */
export function recordNotedStatement(
  databases: Databases,
  step: FoldStep,
  { noted, derived, begun }: Marks,
): Statement {
  return {
    query: `INSERT INTO ${databases.base}.history_marks (shard, noted, derived, begun)
            SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'), fromUnixTimestamp64Milli({noted:Int64}, 'UTC'),
              fromUnixTimestamp64Milli({derived:Int64}, 'UTC'), toDate({begun:UInt16})
            WHERE ${fenceOf(databases, step)} ${bounds(step)}`,
    query_params: { holder: step.term.holder, noted, derived, begun },
  }
}
