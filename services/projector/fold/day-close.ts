/**
 * Closes UTC days: copies the rows that changed on a day into the history (contracts/tables/0003-history.sql) when it is over.
 *
 * The read table keeps only the latest row of a campaign. So the last row of a day must be copied before a row with a stamp of
 * the next day replaces it. Every statement that stamps campaigns therefore has the end of the leader's day as a condition
 * (`dayFence` in fold-statements.ts): it fails if its stamp would be later. The leader then closes the day, and goes on.
 *
 * - A day is that of the stamps, and stamps never run backwards (watermark.ts). So a step of the clock mixes no days.
 * - No statement that stamps campaigns may run during a close. The caller waits for it.
 * - It may be interrupted at any point. The next call, of whichever leader, gives the same rows.
 * - The views show a day as closed from the moment on which that is recorded, in one step.
 */
import type { Sleep } from '../../runtime/sleep.ts'
import { type Databases, type Statement, type Tables, TablesError } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { type FoldStep, fill, stepParameters } from './fold-statements.ts'
import { type Line, runWhole, splitOrRefuse } from './line.ts'
import { clockStatement } from './watermark.ts'

export interface DayCloseDependencies {
  tables: Tables
  databases: Databases
  nextStep: (pieces: number, piece: number) => FoldStep
  line: Line
  /** Writes the watermark, at least this moment (Unix ms). Throws if another fold worker leads. */
  advanceWatermark: (atLeast: number) => Promise<void>
  sleep: Sleep
}

/** The day in which a leader may stamp. */
export interface OpenDay {
  /** Unix ms, by the stamps. Stamps from then on belong to the next term. */
  until: number
  /** How far `until` was away at the moment of the call, ms. */
  msLeft: number
}

/** Unix ms; 0 before the first close. As long as `closedFrom` is before `closed`, the last close has not ended. */
interface Closed {
  closedFrom: number
  closed: number
}

interface ClosedRow extends Closed {
  /** About how many rows a close looks at. */
  rows: number
}

const dayMs = 86_400_000
// If the clock stands behind the stamps, a row may get a stamp some milliseconds above that of its statement.
const marginMs = 1_000
const looksMax = 10
const campaignsPerPiece = 200_000

const files = {
  close: readSql('close-days', import.meta.url),
  noteLatest: readSql('note-latest-days', import.meta.url),
  record: readSql('record-close', import.meta.url),
}

/** Closes the days that are over, and resolves with the present one. `undefined` if another fold worker leads. */
export async function openDay(dependencies: DayCloseDependencies): Promise<OpenDay | undefined> {
  const stamp = await stampOfOpenDay(dependencies)
  const begin = beginOf(stamp)
  const found = await readClosed(dependencies)
  if (found.closedFrom < found.closed && !(await noteLatest(dependencies, found))) return undefined
  if (found.closed < begin && !(await close(dependencies, found, begin))) return undefined
  const until = begin + dayMs - marginMs
  return { until, msLeft: until - stamp }
}

/**
 * A stamp of this moment, Unix ms. No later stamp is of an earlier day. At the end of a day it waits for the next one. If the clock
 * stands behind the watermark, it may be days until the clock passes it: then the watermark goes to the next day.
 */
async function stampOfOpenDay({
  tables,
  databases,
  advanceWatermark,
  sleep,
}: DayCloseDependencies): Promise<number> {
  let advances = 0
  for (let look = 0; look < looksMax; look++) {
    const [row] = await tables.rows<{ now: number; watermark: number }>(clockStatement(databases))
    if (row === undefined) throw new Error('ClickHouse told no time')
    const stamp = Math.max(row.now, row.watermark)
    const nextDay = beginOf(stamp) + dayMs
    if (nextDay - stamp <= marginMs && row.watermark > row.now) {
      await advanceWatermark(nextDay)
    } else if (nextDay - stamp <= marginMs) {
      await sleep(nextDay - stamp)
    } else if (row.watermark < beginOf(stamp) && advances < 2) {
      // Without the watermark, a clock that steps back could give stamps of a day that is closed.
      await advanceWatermark(0)
      advances++
    } else {
      return stamp
    }
  }
  throw new TablesError('ClickHouse’s clock does not pass the end of the day', { retryable: true })
}

function beginOf(stamp: number): number {
  return stamp - (stamp % dayMs)
}

/** Copies the rows from `found.closed` to `begin`. False if another fold worker leads. */
async function close(dependencies: DayCloseDependencies, found: ClosedRow, begin: number): Promise<boolean> {
  const { databases } = dependencies
  const { closed, rows } = found
  // Nothing was ever folded.
  if (rows === 0) return record(dependencies, { closedFrom: begin, closed: begin })
  await inPieces(dependencies, {
    name: 'the close of a day (close-days.sql)',
    rows,
    statementOf: step => closeDaysStatement(databases, step, { closed, until: begin }),
  })
  const done = { closedFrom: closed, closed: begin }
  return (await record(dependencies, done)) && noteLatest(dependencies, { ...done, rows })
}

async function noteLatest(dependencies: DayCloseDependencies, done: ClosedRow): Promise<boolean> {
  const { databases } = dependencies
  await inPieces(dependencies, {
    name: 'noting the latest days (note-latest-days.sql)',
    rows: done.rows,
    statementOf: step => noteLatestStatement(databases, step, done),
  })
  return record(dependencies, { closedFrom: done.closed, closed: done.closed })
}

async function inPieces(
  { line }: DayCloseDependencies,
  { name, rows, statementOf }: { name: string; rows: number; statementOf: (step: FoldStep) => Statement },
): Promise<void> {
  await line.runPieces({
    name,
    pieces: Math.max(1, Math.ceil(rows / campaignsPerPiece)),
    statementOf,
    partsOf: splitOrRefuse(4),
  })
}

async function record(dependencies: DayCloseDependencies, done: Closed): Promise<boolean> {
  const { line, databases, nextStep } = dependencies
  await runWhole(line, recordCloseStatement(databases, nextStep(1, 0), done))
  const found = await readClosed(dependencies)
  return found.closed === done.closed && found.closedFrom === done.closedFrom
}

async function readClosed({ tables, databases }: DayCloseDependencies): Promise<ClosedRow> {
  const [row] = await tables.rows<ClosedRow>(closedStatement(databases))
  if (row === undefined) throw new Error('ClickHouse did not tell which days are closed')
  return row
}

/** Up to when days are closed. */
export function closedStatement({ base, read }: Databases): Statement {
  return {
    query: `SELECT toUnixTimestamp64Milli(tupleElement(last, 1)) AS closed,
              toUnixTimestamp64Milli(tupleElement(last, 2)) AS closedFrom,
              (SELECT count() FROM ${read}.campaigns) + (SELECT count() FROM ${base}.history_latest) AS rows
            FROM (SELECT max((closed, closed_from)) AS last FROM ${base}.history_closed)`,
  }
}

/** Copies rows of the days from `closed` to `until`. */
export function closeDaysStatement(
  databases: Databases,
  step: FoldStep,
  { closed, until }: { closed: number; until: number },
): Statement {
  return {
    query: fill(files.close, databases, step),
    query_params: { ...stepParameters(step), closed, until },
  }
}

export function noteLatestStatement(
  databases: Databases,
  step: FoldStep,
  { closedFrom, closed }: Closed,
): Statement {
  return {
    query: fill(files.noteLatest, databases, step),
    query_params: { ...stepParameters(step), closed_from: closedFrom, closed },
  }
}

export function recordCloseStatement(
  databases: Databases,
  step: FoldStep,
  { closedFrom, closed }: Closed,
): Statement {
  return {
    query: fill(files.record, databases, step),
    query_params: { holder: step.term.holder, closed_from: closedFrom, closed },
  }
}
