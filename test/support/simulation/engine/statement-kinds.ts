/**
 * Tells statements apart. This is the only place that knows how the services' statements look.
 *
 * It contains none of their text. The services' own builders build each statement, and its shape is kept, which is its text
 * without numbers. A statement with a shape that no builder produces is refused.
 */

import * as days from '../../../../services/projector/fold/days.ts'
import * as epochs from '../../../../services/projector/fold/fold-epochs.ts'
import { untilNoFoldRuns } from '../../../../services/projector/fold/fold-leadership.ts'
import * as progress from '../../../../services/projector/fold/fold-progress.ts'
import * as fold from '../../../../services/projector/fold/fold-statements.ts'
import * as quarantine from '../../../../services/projector/fold/quarantine.ts'
import * as watermark from '../../../../services/projector/fold/watermark.ts'
import { projectsStatement } from '../../../../services/query/campaigns/campaign-rows.ts'
import * as lists from '../../../../services/query/lists/list-statements.ts'
import type { Databases, Statement } from '../../../../services/tables/port.ts'

/** Statements of the fold that write. */
export type WriteKind =
  | 'fold'
  | 'withdraw'
  | 'note gap'
  | 'fold keys'
  | 'record folded'
  | 'record quarantine'
  | 'take epoch'
  | 'advance watermark'
  | 'note days'
  | 'derive days'
  | 'record noted'

export type ReadKind =
  | 'running'
  | 'piece campaigns'
  | 'quarantine'
  | 'pending batches'
  | 'long runs'
  | 'epoch holders'
  | 'holds epoch'
  | 'clock'
  | 'history marks'
  | 'snapshot'
  | 'projects'
  | 'changes'
  | 'changed entries'
  | 'next entries'
  | 'removals'

export type StatementKind = WriteKind | ReadKind

/** Returns the kind of a statement. Throws if the statement is unknown. */
export type KindOf = (statement: Statement) => StatementKind

/** The simulation knows only the lists that a mirror needs: everything, or what has changed, newest first. */
export function createKindOf(databases: Databases): KindOf {
  const known = new Map<string, StatementKind>()
  const add = (kind: StatementKind, { query }: Statement) => known.set(shapeOf(query), kind)
  addFold(add, databases)
  addLists(add, databases)
  return ({ query }) => {
    const found = known.get(shapeOf(query))
    if (found === undefined) throw new Error(`a statement that the simulation does not know: ${query}`)
    return found
  }
}

type Add = (kind: StatementKind, statement: Statement) => void

function addFold(add: Add, databases: Databases): void {
  const step = {
    term: { epoch: 1n, holder: '' },
    foldId: 1n,
    pieces: 1,
    piece: 0,
    msMax: 1,
    memoryBytesMax: 1,
    platformDigits: 2,
  }
  const pending = { foldId: 1n, runs: [], longRuns: [] }
  const batches = [true, false].flatMap(hasQuarantine =>
    [true, false].map(isAgain => ({ ...pending, hasQuarantine, isAgain })),
  )
  const bounds = [undefined, 1].flatMap(latest => [undefined, 1].map(dayEndsAt => ({ latest, dayEndsAt })))
  for (const bound of bounds) {
    const bounded = { ...step, ...bound }
    for (const touched of [...batches, { campaign: '' }])
      add('fold', fold.foldCampaignsStatement(databases, bounded, touched))
    add('note gap', fold.noteGapStatement(databases, bounded))
    add('withdraw', fold.fileStatement('withdraw', databases, bounded))
  }
  for (const touched of [...batches, { campaign: '' }])
    add('piece campaigns', fold.pieceCampaignsStatement(databases, step, touched))
  add('record quarantine', fold.fileStatement('record-quarantine', databases, step))
  add('quarantine', quarantine.quarantineStatement(databases))
  add('fold keys', fold.fileStatement('fold-keys', databases, step))
  add('pending batches', progress.pendingBatchesStatement(databases, []))
  add('long runs', progress.longRunsStatement(databases))
  add('record folded', progress.recordFoldedStatement(databases, step, { runs: [], elapsedMs: 0 }))
  add('take epoch', epochs.takeEpochStatement(databases, '', { past: '' }))
  add('epoch holders', epochs.epochHoldersStatement(databases))
  add('holds epoch', epochs.holdsEpochStatement(databases, step.term))
  add('advance watermark', watermark.advanceWatermarkStatement(databases, step, 0))
  add('clock', watermark.clockStatement(databases))
  add('history marks', days.marksStatement(databases))
  add('note days', fold.fileStatement('note-days', databases, step))
  add('note days', fold.fileStatement('follow-days', databases, step))
  add('derive days', fold.fileStatement('derive-days', databases, step))
  add('record noted', days.recordNotedStatement(databases, step, { noted: 0, derived: 0, begun: 0 }))
  const rows = async <Row>(running: Statement): Promise<Row[]> => {
    add('running', running)
    return [{ statements: 0 }] as Row[]
  }
  // It asks at once.
  void untilNoFoldRuns({ rows }, databases, { msMax: 0, monotonicMs: () => 0, sleep: async () => {} })
}

function addLists(add: Add, databases: Databases): void {
  add('projects', projectsStatement([], databases, 1))
  for (const isCounted of [true, false]) {
    const bounds = { idsMax: 1, isCounted, msMax: 1 }
    add('changes', lists.campaignChangesStatement(0, databases, bounds))
    add('changed entries', lists.changedEntriesStatement([], databases, bounds))
  }
  add('next entries', lists.nextEntriesStatement('', databases, { rowsMax: 1, msMax: 1 }))
  add('removals', lists.removalsStatement(0, databases, { keptMs: 1, msMax: 1 }))
  for (const updatedSince of [null, 0]) {
    const query: lists.ListQuery = { status: null, category: null, sort: 'newest', updatedSince }
    add('snapshot', lists.snapshotStatement(query, databases, 1))
  }
}

/** The epoch under which a statement of the fold may write. It is in the text and not in a parameter. */
export function epochOf({ query }: Statement): bigint {
  const found = /= \((\d+), \{holder:String\}\)/.exec(query)?.[1]
  if (found === undefined) throw new Error('a statement of the fold without its epoch')
  return BigInt(found)
}

/** The table that a statement writes, with its database. */
export function targetOf({ query }: Statement): string {
  const found = /INSERT INTO (\S+)/.exec(query)?.[1]
  if (found === undefined) throw new Error(`a statement that writes no table: ${query}`)
  return found
}

function shapeOf(query: string): string {
  return query.replaceAll(/\d+(?:\.\d+)?/g, '0')
}
