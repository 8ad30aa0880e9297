/**
 * Runs a fold as statements that each have to end in time. A fold of many campaigns is split into pieces, and a piece that
 * does not end in time is split again.
 */
import type { Sleep } from '../../shared/sleep.ts'
import { type Statement, type Tables, TablesError } from '../../shared/tables/port.ts'
import type { FoldStep } from './fold-statements.ts'

export interface PieceRunnerDependencies {
  tables: Tables
  /** Commit horizon, ms. A statement gets half of it. */
  horizonMs: number
  nextStep: (pieces: number, piece: number) => FoldStep
  /** Runs before each statement. What it throws ends the fold. */
  beforePiece: () => Promise<void>
  /** A statement did not end in time, so rows that it may have written are in doubt. */
  onDoubt: () => void
  /** Nothing is known of the end of a statement: it may still run. */
  onUnseen: () => void
  /** Waits before another attempt, longer each time. */
  backoff: (attempt: number) => Promise<void>
  monotonicMs: () => number
  sleep: Sleep
}

/** What is run in pieces, one statement each. */
export interface Pieces {
  /** What the statements are, for the error. */
  name: string
  pieces: number
  statementOf: (step: FoldStep) => Statement
  /** How many smaller pieces replace a piece that failed. With 1, the piece is tried again; with 0, it is left out. */
  partsOf: (failed: FailedPiece) => number | Promise<number>
  /** Runs after a failure, before anything else is tried. */
  afterFailure: () => Promise<void>
  /** Runs between two statements. */
  between?: () => Promise<void>
  onProgress?: ((done: FoldProgress) => void) | undefined
}

export interface FailedPiece {
  pieces: number
  piece: number
  /** How often this piece, or a larger one that contained it, has failed. */
  failures: number
  /** Why ClickHouse could not do this piece; `undefined` if the reason need not be in the piece. */
  refusal: Refusal | undefined
}

/** The work of a statement was too much for its bounds, or cannot be done at all. */
export interface Refusal {
  /** ClickHouse's name of the error, or `LATE`. */
  reason: string
  /** Set if a statement on the same campaigns can never succeed. */
  lasting?: TablesError
}

/** Statements that have ended, of those that are known to be needed. */
export interface FoldProgress {
  done: number
  of: number
}

/** Resolves with the number of statements. Throws if a piece fails in every size. */
export type RunPieces = (whole: Pieces) => Promise<number>

/** The UTC day of the term is over. The statement wrote nothing. The day has to be closed (day-close.ts); then the fold goes on. */
export class DayOver extends TablesError {
  override name = 'DayOver'

  constructor(cause: unknown) {
    super('the UTC day of this term is over', { retryable: true, cause })
  }
}

const attemptsMax = 6

// The statement was ended for its time, or ended after it.
const overTime: ReadonlySet<string> = new Set(['LATE', 'TIMEOUT_EXCEEDED', 'TOO_SLOW'])

// ClickHouse cancelled the statement, so it does not run any more.
const exceededBounds: ReadonlySet<string> = new Set([
  'TIMEOUT_EXCEEDED',
  'TOO_SLOW',
  'MEMORY_LIMIT_EXCEEDED',
  'CANNOT_ALLOCATE_MEMORY',
])

// ClickHouse could not compute with the values of some row. Other errors, such as a missing right, concern every fold.
const wrongValues: ReadonlySet<string> = new Set([
  'DECIMAL_OVERFLOW',
  'ILLEGAL_DIVISION',
  'ARGUMENT_OUT_OF_BOUND',
  'VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE',
  'CANNOT_CONVERT_TYPE',
  'TOO_LARGE_ARRAY_SIZE',
  'TOO_LARGE_STRING_SIZE',
  'SIZES_OF_ARRAYS_DONT_MATCH',
  'LIMIT_EXCEEDED',
])

/** Pieces that have ended are not run again. */
export function createPieceRunner(dependencies: PieceRunnerDependencies): RunPieces {
  const { horizonMs, nextStep, beforePiece, backoff } = dependencies

  return async ({ name, pieces, statementOf, partsOf, afterFailure, between, onProgress = () => {} }) => {
    const left = Array.from({ length: pieces }, (_, piece) => ({ pieces, piece, failures: 0 }))
    let statements = 0
    for (let next = left.pop(); next; next = left.pop()) {
      if (statements > 0) await between?.()
      await beforePiece()
      const outcome = await outcomeOf(dependencies, statementOf(nextStep(next.pieces, next.piece)))
      if (outcome === 'in time') {
        statements++
        onProgress({ done: statements, of: statements + left.length })
        continue
      }
      const refusal = 'unseen' in outcome ? undefined : outcome
      const failures = next.failures + 1
      if (failures === attemptsMax) {
        const size = next.pieces > pieces ? ', in smaller pieces, too' : ''
        throw new TablesError(
          `${name} failed ${attemptsMax} times${size}: ${reasonOf(outcome, horizonMs / 2)}`,
          { retryable: true },
        )
      }
      await backoff(failures)
      await afterFailure()
      const parts = await partsOf({ ...next, failures, refusal })
      for (let part = 0; part < parts; part++) {
        // Pieces are ranges, so the parts of a piece are neighbours.
        left.push({ pieces: next.pieces * parts, piece: next.piece * parts + part, failures })
      }
    }
    return statements
  }
}

/** For people: why a statement did not do its work. */
function reasonOf(outcome: { unseen: string } | Refusal, msMax: number): string {
  if ('unseen' in outcome) return outcome.unseen
  const { reason } = outcome
  return overTime.has(reason)
    ? `it did not end within ${msMax} ms (${reason})`
    : `ClickHouse refused it (${reason})`
}

/** Runs a statement. `in time`: it certainly ended within its time. `unseen`: nothing is known of its end, and why. */
async function outcomeOf(
  { tables, horizonMs, onDoubt, onUnseen, monotonicMs, sleep }: PieceRunnerDependencies,
  statement: Statement,
): Promise<'in time' | { unseen: string } | Refusal> {
  const startedAt = monotonicMs()
  try {
    await tables.run(statement)
    if (monotonicMs() - startedAt <= horizonMs / 2) return 'in time'
    onDoubt()
    return { reason: 'LATE' }
  } catch (error) {
    if (isDayOver(error)) throw new DayOver(error)
    onDoubt()
    const refusal = refusalOf(error)
    if (refusal) return refusal
    if (!(error instanceof TablesError && error.retryable)) throw error
    onUnseen()
    // The statement may still be running, for as long as the horizon allows.
    await sleep(horizonMs - (monotonicMs() - startedAt))
    return { unseen: error.message }
  }
}

/** Whether a statement failed at the fence of the day, the only one that throws. */
export function isDayOver(error: unknown): boolean {
  return error instanceof TablesError && error.type === 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'
}

/** Why ClickHouse did not do the work of a statement, if the reason can be in the campaigns themselves. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof TablesError) || error.type === undefined) return undefined
  if (exceededBounds.has(error.type)) return { reason: error.type }
  return wrongValues.has(error.type) ? { reason: error.type, lasting: error } : undefined
}
