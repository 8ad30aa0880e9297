/** Stamps rows of the live tables in a fold pause, in pieces that each end in time. */
import { isDayOver } from '../projector/fold/fold-pieces.ts'
import { type FoldStep, fill, stampOf } from '../projector/fold/fold-statements.ts'
import type { Databases, Statement, Tables } from '../shared/tables/port.ts'
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
import { shadowOf } from './shadow-tables.ts'

// With 400,000 changed campaigns, each of this many pieces ends in time.
const stampPieces = 16

const changed = readSql('stamp-changed', import.meta.url)

/** The stamp that a change would get now, as text. Every later stamp is at or after it. */
export async function readNextStamp(tables: Tables, databases: Databases): Promise<string> {
  const [row] = await tables.rows<{ stamp: string }>({
    query: `SELECT toString(${stampOf(databases)}) AS stamp`,
  })
  return row?.stamp ?? ''
}

/**
 * Stamps the changed rows after a swap that changed many, in a second fold pause. `swappedAt`: a moment before the swap
 * (`readNextStamp`). Can be repeated. Throws `FoldPauseLost` if not all of it was done.
 */
export async function stampChanged(dependencies: HeldFoldDependencies, swappedAt: string): Promise<void> {
  const { databases } = dependencies
  await stampInPieces(dependencies, step => ({
    query: fill(changed, databases, step).replaceAll('${previous}', shadowOf(databases).model),
    query_params: { swapped_at: swappedAt },
  }))
}

/**
 * Pauses the fold, and runs the statement for each piece of the ids' hashes. Throws `FoldPauseLost` if not all of it was done.
 * `begin`: a statement that runs first.
 */
export async function stampInPieces(
  dependencies: HeldFoldDependencies,
  statementOf: (step: FoldStep) => Statement,
  begin?: (step: FoldStep) => Statement,
): Promise<void> {
  const { tables, settings } = dependencies
  const { memoryBytesMax, horizonMs } = settings
  const term = await pauseFold(dependencies)
  const run = (step: FoldStep, { query, query_params }: Statement) =>
    tables.run({
      query,
      query_params: {
        holder: term.holder,
        fold_id: step.foldId.toString(),
        pieces: step.pieces,
        piece: step.piece,
        ...query_params,
      },
    })
  try {
    for (let piece = 0; piece < stampPieces; piece++) {
      const foldId = (term.epoch << 32n) + stampCounter + BigInt(piece)
      const step = { term, foldId, pieces: stampPieces, piece, msMax: horizonMs / 2, memoryBytesMax }
      if (piece === 0 && begin) await run(step, begin(step))
      await run(step, statementOf(step))
      await confirm(dependencies, term, stampCounter + BigInt(piece))
    }
    if (!(await holdsEpoch(dependencies, term)))
      throw new FoldPauseLost('another process took the epoch while rows were stamped')
    await release(dependencies, { isSettled: true })
  } catch (error) {
    await release(dependencies, { isSettled: false })
    throw isDayOver(error)
      ? new FoldPauseLost('the UTC day ended during the stamps', { cause: error })
      : error
  }
}
