/**
 * Tells statements apart. This is the only place that knows how the services' statements look.
 *
 * It contains none of their text. The services' own builders build each statement, and its shape is kept, which is its text
 * without numbers. A statement with a shape that no builder produces is refused.
 */
import {
  pendingBatchesStatement,
  pendingKeysStatement,
} from '../../../services/projector/fold/batch-log-statements.ts'
import {
  closeDaysStatement,
  closedStatement,
  noteLatestStatement,
  recordCloseStatement,
} from '../../../services/projector/fold/day-close.ts'
import {
  appendFoldStatement,
  confirmedFoldStatement,
  epochHoldersStatement,
  foldCampaignsStatement,
  pieceCampaignsStatement,
  progressStatement,
  restampStatement,
  takeEpochStatement,
  untilDecidedStatement,
} from '../../../services/projector/fold/fold-statements.ts'
import {
  dropStagedStatement,
  publishStagedStatement,
  recordSetAsideStatement,
  setAsideStatement,
  touchedOfStatement,
} from '../../../services/projector/fold/set-aside-statements.ts'
import {
  advanceStampFloorStatement,
  stampClockStatement,
} from '../../../services/projector/fold/stamp-floor.ts'
import {
  campaignChangesStatement,
  changedEntriesStatement,
  type ListQuery,
  nextEntriesStatement,
  projectsStatement,
  snapshotStatement,
} from '../../../services/query/views/statements.ts'
import type { Databases, Statement } from '../../../services/shared/tables/port.ts'

/** Statements that write campaigns to the read table. */
export type CampaignWriteKind = 'fold' | 'restamp' | 'publish' | 'until decided'

export type WriteKind =
  | CampaignWriteKind
  | 'fold alone'
  | 'drop staged'
  | 'record set aside'
  | 'record'
  | 'take epoch'
  | 'advance floor'
  | 'close days'
  | 'note latest days'
  | 'record close'

export type ReadKind =
  | 'piece campaigns'
  | 'pending keys'
  | 'set aside'
  | 'touched set aside'
  | 'pending batches'
  | 'progress'
  | 'confirmed fold'
  | 'epoch holders'
  | 'stamp clock'
  | 'closed days'
  | 'snapshot'
  | 'projects'
  | 'changes'
  | 'changed entries'
  | 'next entries'

export type StatementKind = WriteKind | ReadKind

/** Returns the kind of a statement. Throws if the statement is unknown. */
export type KindOf = (statement: Statement) => StatementKind

/** The simulation knows only the lists that a mirror needs: everything, or what has changed, newest first. */
export function createKindOf(databases: Databases): KindOf {
  const known = new Map<string, StatementKind>()
  const add = (kind: StatementKind, { query }: Statement) => known.set(shapeOf(query), kind)

  const step = {
    term: { epoch: 1n, holder: '', until: 1 },
    foldId: 1n,
    pieces: 1,
    piece: 0,
    msMax: 1,
    memoryBytesMax: 1,
  }
  const done = { folded: {}, campaigns: 0, elapsedMs: 0 }
  const range = { from: {}, to: {} }
  for (const touched of [range, { ...range, except: ['c'] }]) {
    add('fold', foldCampaignsStatement(databases, step, { touched, platformDigits: 2 }))
    add('piece campaigns', pieceCampaignsStatement(databases, step, touched))
  }
  const alone = { touched: { campaign: '' }, platformDigits: 2, isStaged: true }
  add('fold alone', foldCampaignsStatement(databases, step, alone))
  add('publish', publishStagedStatement(databases, step, { campaign: '', stagedId: 1n }))
  add('drop staged', dropStagedStatement(databases, 1n))
  const setAside = { campaign: '', isSetAside: true, isBehind: true, failures: 0, reason: '' }
  add('record set aside', recordSetAsideStatement(databases, step, setAside))
  add('set aside', setAsideStatement(databases))
  add('touched set aside', touchedOfStatement(databases, range, []))
  add('pending keys', pendingKeysStatement(databases, {}))
  add('restamp', restampStatement(databases, step, { after: 0n, before: 1n }))
  add('until decided', untilDecidedStatement(databases, step))
  add('record', appendFoldStatement(databases, step, done))
  add('take epoch', takeEpochStatement(databases, ''))
  add('advance floor', advanceStampFloorStatement(databases, step))
  add('stamp clock', stampClockStatement(databases))
  add('closed days', closedStatement(databases))
  add('close days', closeDaysStatement(databases, step, { closed: 0, until: 1 }))
  add('note latest days', noteLatestStatement(databases, step, { closedFrom: 0, closed: 1 }))
  add('record close', recordCloseStatement(databases, step, { closedFrom: 0, closed: 1 }))
  add('pending batches', pendingBatchesStatement(databases, {}))
  add('progress', progressStatement(databases))
  add('confirmed fold', confirmedFoldStatement(databases))
  add('epoch holders', epochHoldersStatement(databases))
  add('projects', projectsStatement([], databases, 1))
  for (const isCounted of [true, false]) {
    const bounds = { idsMax: 1, isCounted, commitHorizonMs: 1, msMax: 1 }
    add('changes', campaignChangesStatement(0, databases, bounds))
    add('changed entries', changedEntriesStatement([], databases, bounds))
  }
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

/** The epoch under which a fold statement may write. It is in the text and not in a parameter. */
export function epochOf({ query }: Statement): bigint {
  const found = /= \((\d+), \{holder:String\}\)/.exec(query)?.[1]
  if (found === undefined) throw new Error('a fold statement without its epoch')
  return BigInt(found)
}

/** The stamp (Unix ms) from which on a statement fails, because the day of its term is over. */
export function untilOf({ query }: Statement): number {
  const found = /throwIf\(own_stamp >= fromUnixTimestamp64Milli\((\d+)/.exec(query)?.[1]
  return found === undefined ? Number.POSITIVE_INFINITY : Number(found)
}

function shapeOf(query: string): string {
  // A condition has one term for each projector.
  return query.replaceAll(/\d+(?:\.\d+)?/g, '0').replaceAll(/( OR \([^()]*\))+/g, '')
}
