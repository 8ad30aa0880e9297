/**
 * The line of the fold: its statements run one after the other, and the next begins when the last has been answered.
 *
 * A statement has succeeded, or ClickHouse has refused its work: it needs more time or memory than it may use, or it cannot
 * compute with some value. A refused piece of a fold is split into smaller ones. Every other outcome ends the leader's term: the
 * statement may still run, or may arrive later, so the leader takes a new epoch before it goes on (fold-leadership.ts).
 */
import { exceededBounds } from '../../tables/clickhouse/clickhouse-errors.ts'
import { type Statement, type Tables, TablesError } from '../../tables/port.ts'
import type { FoldStep } from './fold-statements.ts'

export interface LineDependencies {
  tables: Pick<Tables, 'run'>
  /** Runs a piece, which is split if ClickHouse refuses it. Default: as every statement. */
  runPiece?: Tables['run'] | undefined
  nextStep: (pieces: number, piece: number) => FoldStep
  /** Runs before each statement of a fold. What it throws ends the fold. */
  beforePiece: () => Promise<void>
  /** Called if it is not known whether a statement ran. The term has to end. */
  onUnseen: () => void
}

/** What is run in pieces, one statement each. */
export interface Pieces {
  /** What the statements are, for the error. */
  name: string
  pieces: number
  statementOf: (step: FoldStep) => Statement
  /** How many smaller pieces replace a piece that was refused. With 0, it is left out. */
  partsOf: (refused: RefusedPiece) => number | Promise<number>
  /** Runs between two statements. */
  between?: () => Promise<void>
  onProgress?: ((done: FoldProgress) => void) | undefined
}

export interface RefusedPiece {
  pieces: number
  piece: number
  /** How often this piece, or a larger one that contained it, was refused. */
  refusals: number
  refusal: Refusal
}

/** The work of a statement was too much for its bounds, or cannot be done at all. */
export interface Refusal {
  /** ClickHouse's name of the error. */
  reason: string
  /** Set if a statement on the same campaigns can never succeed. */
  lasting?: TablesError
}

/** Statements that have ended, of those that are known to be needed. */
export interface FoldProgress {
  done: number
  of: number
}

export type Line = ReturnType<typeof createLine>

/** ClickHouse refused what cannot be split. Nothing of it runs any more, and the reason is not in a campaign. */
export class ServerSlow extends TablesError {
  override name = 'ServerSlow'
}

/** The tables that statements of the line write. A new leader waits for these (fold-leadership.ts). */
export const writtenTables = [
  ...['campaigns', 'api_keys', 'watermarks', 'fold_progress', 'quarantine'],
  ...['campaign_days', 'history_marks'],
]

const refusalsMax = 6

// ClickHouse could not compute with the values of some row. Any other error, such as a missing right, would fail every fold, so it blames no
// campaign.
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

export function createLine({
  tables,
  runPiece = tables.run,
  nextStep,
  beforePiece,
  onUnseen,
}: LineDependencies) {
  async function run(statement: Statement, send = tables.run): Promise<Refusal | undefined> {
    const [, table = ''] = /INSERT INTO \w+\.(\w+)\s/.exec(statement.query) ?? []
    if (!writtenTables.includes(table))
      throw new Error(`no new leader waits for this statement: ${statement.query.slice(0, 80)}`)
    try {
      await send(statement)
      return undefined
    } catch (error) {
      // It wrote nothing, and the term goes on.
      if (isAtClockFence(error)) throw new TablesError(error.message, { retryable: true, cause: error })
      const refusal = refusalOf(error)
      if (refusal) return refusal
      onUnseen()
      throw error
    }
  }

  async function runPieces(whole: Pieces): Promise<number> {
    const { name, pieces, statementOf, partsOf, between, onProgress = () => {} } = whole
    const left = Array.from({ length: pieces }, (_, piece) => ({ pieces, piece, refusals: 0 }))
    let statements = 0
    for (let next = left.pop(); next; next = left.pop()) {
      if (statements > 0) await between?.()
      await beforePiece()
      const refusal = await run(statementOf(nextStep(next.pieces, next.piece)), runPiece)
      if (!refusal) {
        statements++
        onProgress({ done: statements, of: statements + left.length })
        continue
      }
      const refusals = next.refusals + 1
      if (refusals === refusalsMax) throw refusedInEverySize(name, refusal)
      const parts = await partsOf({ ...next, refusals, refusal })
      for (let part = 0; part < parts; part++) {
        // Pieces are ranges, so the parts of a piece are neighbours.
        left.push({ pieces: next.pieces * parts, piece: next.piece * parts + part, refusals })
      }
    }
    return statements
  }

  return {
    /** Runs one statement. Resolves with why ClickHouse refused its work, if it did. Throws every other error. */
    run: (statement: Statement) => run(statement),
    /** Runs statements in pieces. Resolves with their number. Throws if a piece is refused in every size. */
    runPieces,
  }
}

function refusedInEverySize(name: string, { reason }: Refusal): TablesError {
  const message = `${name} was refused ${refusalsMax} times, in smaller pieces, too: ${reason}`
  return new ServerSlow(message, { retryable: true })
}

/** Runs a statement whose work cannot be split. Throws if ClickHouse refuses it. */
export async function runWhole(line: Pick<Line, 'run'>, statement: Statement): Promise<void> {
  const refusal = await line.run(statement)
  if (refusal)
    throw refusal.lasting ?? new ServerSlow(`ClickHouse refused it (${refusal.reason})`, { retryable: true })
}

/** For pieces that cannot be left out: splits a refused one, and throws what can never succeed. */
export function splitOrRefuse(parts: number): Pieces['partsOf'] {
  return ({ refusal }) => {
    if (refusal.lasting) throw refusal.lasting
    return parts
  }
}

/** Whether a statement failed at the fence of the clock, the only one that throws. */
function isAtClockFence(error: unknown): error is TablesError {
  return error instanceof TablesError && error.type === 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'
}

/** Whether ClickHouse refused a statement because it is too much work. A smaller piece may be accepted. */
export function isRefused({ type }: TablesError): boolean {
  return type !== undefined && exceededBounds.has(type)
}

function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof TablesError) || error.type === undefined) return undefined
  if (isRefused(error)) return { reason: error.type }
  return wrongValues.has(error.type) ? { reason: error.type, lasting: error } : undefined
}
