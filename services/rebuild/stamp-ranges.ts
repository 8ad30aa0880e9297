/**
 * Stamps the campaigns of one server in ranges of their ids. A run of ranges is stamped in one fold pause, so that a pause is
 * short however many campaigns there are, and the projectors fold in between.
 */
import { contentColumns } from '../../contracts/tables/campaign-columns.ts'
import { refuseLasting } from '../projector/fold/fold-leadership.ts'
import { createPieceRunner, DayOver } from '../projector/fold/fold-pieces.ts'
import { type FoldStep, fill, type Term } from '../projector/fold/fold-statements.ts'
import { untilNoFoldRuns } from '../projector/fold/running-folds.ts'
import type { Databases, Statement } from '../shared/tables/port.ts'
import { readSql } from '../shared/tables/read-sql.ts'
import {
  confirm,
  FoldPauseLost,
  type HeldFoldDependencies,
  holdsEpoch,
  pauseFold,
  release,
  stampCounter,
} from './held-fold.ts'
import { revokePermits } from './swap-permit.ts'

export interface RangesToStamp {
  /** The staged table with the stamps to take over. */
  taken: string
  /** Stamps before this were passed by pollers of the other tables; Unix ms, as text. */
  reached: string
}

const rowsPerRange = 500
const rangesPerPiece = 10
const rangesPerPause = 100
const attemptsMax = 5

const files = {
  take: readSql('take-stamps', import.meta.url),
  raise: readSql('raise-stamp-floor', import.meta.url),
}

/** Throws `FoldPauseLost` if other processes take the fold all the time. */
export async function stampRanges(dependencies: HeldFoldDependencies, work: RangesToStamp): Promise<void> {
  const firsts = await readFirsts(dependencies)
  for (let at = 0, lost = 0; at < firsts.length; ) {
    const ranges = firsts.slice(at, at + rangesPerPause)
    const next = firsts[at + rangesPerPause] ?? ''
    try {
      await stampInPause(dependencies, work, [...ranges, next])
      at += rangesPerPause
      lost = 0
    } catch (error) {
      if (!(error instanceof FoldPauseLost) || ++lost === attemptsMax) throw error
    }
  }
}

/** The first id of each range. Later campaigns are in these ranges too: the first one begins before every id. */
async function readFirsts({ tables, databases }: HeldFoldDependencies): Promise<string[]> {
  const rows = await tables.rows<{ id: string }>({
    query: `SELECT campaign_id AS id
            FROM (SELECT campaign_id, row_number() OVER (ORDER BY campaign_id) AS place FROM ${databases.model}.campaigns FINAL)
            WHERE place % ${rowsPerRange} = 0 ORDER BY id`,
  })
  return ['', ...rows.map(({ id }) => id)]
}

/** `bounds`: the first id of each range, and the first one after them (empty: there is no end). */
async function stampInPause(
  dependencies: HeldFoldDependencies,
  work: RangesToStamp,
  bounds: readonly string[],
): Promise<void> {
  const { tables, databases, settings } = dependencies
  const term = await pauseFold(dependencies)
  try {
    // A rebuild that looked at the epoch before it was taken must not swap any more.
    await revokePermits(tables, databases)
    await tables.run(raiseFloor(databases, stepOf(dependencies, term, 0n), work))
    await runPieces(dependencies, term, work, bounds)
    // A statement of an epoch that is lost writes nothing, so this look at the end is about all of them.
    if (!(await holdsEpoch(dependencies, term))) throw new FoldPauseLost('another process took the fold over')
    await release(dependencies, { isSettled: true })
  } catch (error) {
    await release(dependencies, { isSettled: false })
    if (!(error instanceof DayOver)) throw error
    throw new FoldPauseLost(`the UTC day ended after at most ${settings.horizonMs} ms`, { cause: error })
  }
}

async function runPieces(
  dependencies: HeldFoldDependencies,
  term: Term,
  work: RangesToStamp,
  bounds: readonly string[],
): Promise<void> {
  const { tables, tablesWithoutRetry, databases, settings, monotonicMs, sleep, random } = dependencies
  const ranges = bounds.length - 1
  let statements = 0n
  const run = createPieceRunner({
    tables: tablesWithoutRetry,
    horizonMs: settings.horizonMs,
    nextStep: (pieces, piece) => ({ ...stepOf(dependencies, term, ++statements), pieces, piece }),
    beforePiece: async () => {},
    // What such a statement wrote stays: nothing reads these tables yet, and the rows are confirmed at the end.
    onDoubt: () => {},
    onUnseen: () => {},
    backoff: attempt => sleep(50 * 2 ** attempt * (0.5 + random() / 2)),
    monotonicMs,
    sleep,
  })
  await run({
    name: 'taking over stamps (take-stamps.sql)',
    pieces: Math.ceil(ranges / rangesPerPiece),
    statementOf: step => takeStatement(databases, step, work, bounds),
    partsOf: refuseLasting(4),
    afterFailure: () =>
      untilNoFoldRuns(tables, databases, { msMax: 2 * settings.horizonMs, monotonicMs, sleep }),
  })
  // The next leader would give other stamps to rows in doubt.
  await confirm(dependencies, term, stampCounter + statements)
}

function stepOf({ settings }: HeldFoldDependencies, term: Term, statements: bigint): FoldStep {
  const { horizonMs, memoryBytesMax } = settings
  const foldId = (term.epoch << 32n) + stampCounter + statements
  return { term, foldId, pieces: 1, piece: 0, msMax: horizonMs / 2, memoryBytesMax }
}

function takeStatement(
  databases: Databases,
  step: FoldStep,
  { taken, reached }: RangesToStamp,
  bounds: readonly string[],
): Statement {
  const ranges = bounds.length - 1
  const placeOf = (piece: number) => Math.floor((ranges * piece) / step.pieces)
  const [first, next] = [bounds[placeOf(step.piece)] ?? '', bounds[placeOf(step.piece + 1)] ?? '']
  const columnsOfRow = contentColumns.map(name => `row.${name}`).join(', ')
  return {
    query: fill(files.take.replaceAll('${row_columns}', columnsOfRow), databases, step).replaceAll(
      '${taken}',
      taken,
    ),
    query_params: {
      holder: step.term.holder,
      fold_id: step.foldId.toString(),
      first,
      next,
      has_end: next !== '' || placeOf(step.piece + 1) < ranges,
      reached,
    },
  }
}

function raiseFloor(databases: Databases, step: FoldStep, { reached }: RangesToStamp): Statement {
  return { query: fill(files.raise, databases, step), query_params: { holder: step.term.holder, reached } }
}
