/**
 * Which statement is which: the only place that knows how the services' statements look.
 *
 * Nothing of their text stands here. Each is built by the services' own builders and kept by its shape, which is its text
 * without the numbers in it; a statement of a shape that no builder gives is refused.
 */
import {
  appendFoldStatement,
  confirmedFoldStatement,
  epochHoldersStatement,
  foldCampaignsStatement,
  pendingBatchesStatement,
  progressStatement,
  restampStatement,
  takeEpochStatement,
} from '../../../services/projector/fold-statements.ts'
import {
  campaignChangesStatement,
  changedEntriesStatement,
  type ListQuery,
  nextEntriesStatement,
  projectsStatement,
  snapshotStatement,
} from '../../../services/query/statements.ts'
import type { Databases, Statement } from '../../../services/shared/tables/port.ts'

export type WriteKind = 'fold' | 'restamp' | 'record' | 'take epoch'

export type ReadKind =
  | 'pending batches'
  | 'progress'
  | 'confirmed fold'
  | 'epoch holders'
  | 'snapshot'
  | 'projects'
  | 'changes'
  | 'changed entries'
  | 'next entries'

export type StatementKind = WriteKind | ReadKind

/** Tells the kind of a statement. Throws where it is none of those that are known. */
export type KindOf = (statement: Statement) => StatementKind

/** Of lists the simulation knows those that a mirror needs: everything, or what has changed, newest first. */
export function createKindOf(databases: Databases): KindOf {
  const known = new Map<string, StatementKind>()
  const add = (kind: StatementKind, { query }: Statement) => known.set(shapeOf(query), kind)

  const step = { tenure: { epoch: 1n, holder: '' }, foldId: 1n, pieces: 1, piece: 0, msMax: 1 }
  const done = { folded: {}, campaigns: 0, elapsedMs: 0 }
  add('fold', foldCampaignsStatement(databases, step, { touched: { from: {}, to: {} }, platformDigits: 2 }))
  add('restamp', restampStatement(databases, step, { after: 0n, before: 1n }))
  add('record', appendFoldStatement(databases, step, done))
  add('take epoch', takeEpochStatement(databases, ''))
  add('pending batches', pendingBatchesStatement(databases, {}))
  add('progress', progressStatement(databases))
  add('confirmed fold', confirmedFoldStatement(databases))
  add('epoch holders', epochHoldersStatement(databases))
  add('projects', projectsStatement([], databases, 1))
  add('changes', campaignChangesStatement(0, databases, { idsMax: 1, msMax: 1 }))
  add('changed entries', changedEntriesStatement(0, databases, 1))
  add('next entries', nextEntriesStatement('', databases, { rowsMax: 1, msMax: 1 }))
  for (const updatedSince of [null, 0]) {
    const query: ListQuery = { status: null, category: null, sort: 'newest', updatedSince }
    add('snapshot', snapshotStatement(query, databases, { commitHorizonMs: 0, msMax: 1 }))
  }

  return ({ query }) => {
    const found = known.get(shapeOf(query))
    if (found === undefined) throw new Error(`a statement that the simulation does not know: ${query}`)
    return found
  }
}

/** The epoch under which a fold statement may write: the one number that stands in its text and not in a parameter. */
export function epochOf({ query }: Statement): bigint {
  const found = /= \((\d+), \{holder:String\}\)/.exec(query)?.[1]
  if (found === undefined) throw new Error('a fold statement without its epoch')
  return BigInt(found)
}

function shapeOf(query: string): string {
  return query.replaceAll(/\d+(?:\.\d+)?/g, '0')
}
