/** Stamps the changed rows of the live tables in a fold pause, in pieces that each end in time. */
import { fill, stampOf, stepParameters } from '../../projector/fold/fold-statements.ts'
import { isDayOver } from '../../projector/fold/line.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { shadowOf } from '../build/shadow-tables.ts'
import {
  FoldPauseLost,
  type HeldFoldDependencies,
  holdsEpoch,
  pauseFold,
  release,
  stampCounter,
} from './held-fold.ts'

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
  const { tables, databases, settings } = dependencies
  const { memoryBytesMax, foldMsMax } = settings
  const term = await pauseFold(dependencies)
  try {
    for (let piece = 0; piece < stampPieces; piece++) {
      const foldId = (term.epoch << 32n) + stampCounter + BigInt(piece)
      const step = { term, foldId, pieces: stampPieces, piece, msMax: foldMsMax, memoryBytesMax }
      await tables.run({
        query: fill(changed, databases, step).replaceAll('${previous}', shadowOf(databases).model),
        query_params: { ...stepParameters(step), swapped_at: swappedAt },
      })
    }
    if (!(await holdsEpoch(dependencies, term)))
      throw new FoldPauseLost('another process took the epoch while rows were stamped')
    await release(dependencies)
  } catch (error) {
    await release(dependencies)
    throw isDayOver(error)
      ? new FoldPauseLost('the UTC day ended during the stamps', { cause: error })
      : error
  }
}
