/** The fold worker's statements in the model of ClickHouse. See services/projector/fold/sql. */
import { crc32 } from 'node:zlib'
import type { Statement } from '../../../services/shared/tables/port.ts'
import { type BatchRow, latestRow, type ModelState, type ReadRow, standingRow } from './model-state.ts'
import { epochOf } from './statement-kinds.ts'

interface StepParameters {
  holder: string
  fold_id: string
  pieces: number
  piece: number
}

type Progress = Record<string, number>

/** Which campaigns a statement is about: those of some batches, or a single one. */
interface TouchedParameters extends StepParameters {
  from: Progress
  to: Progress
  except?: readonly string[]
  campaign?: string
}

/** The rows that a fold of campaigns writes. */
export function foldedRows(state: ModelState, statement: Statement, stamp: number): ReadRow[] {
  if (!holds(state, statement)) return []
  const { fold_id } = statement.query_params as unknown as StepParameters
  return touchedIds(state, statement).flatMap(id => {
    const campaign = state.ledger.get(id)
    if (campaign === undefined) return []
    const row = { id, foldId: BigInt(fold_id), isDeleted: !campaign.isPublic, campaign }
    return isChange(state, row) ? { ...row, updatedAt: newStamp(state, id, stamp) } : []
  })
}

/** Whether a row differs from what is shown. */
function isChange(state: ModelState, { id, isDeleted, campaign }: Omit<ReadRow, 'updatedAt'>): boolean {
  const standing = standingRow(state, id)
  return isDeleted ? standing !== undefined : standing?.campaign.content !== campaign.content
}

/** Two states of a campaign never have the same stamp. */
function newStamp(state: ModelState, id: string, stamp: number): number {
  return Math.max(stamp, (standingRow(state, id)?.updatedAt ?? 0) + 1)
}

/** Stages what a fold of a single campaign would write. */
export function stageAlone(state: ModelState, statement: Statement): void {
  const { fold_id } = statement.query_params as unknown as StepParameters
  state.staged.set(fold_id, foldedRows(state, statement, 0))
}

export function dropStaged(state: ModelState, { query }: Statement): void {
  state.staged.delete(/\d+$/.exec(query)?.[0] ?? '')
}

/** The rows of a staged campaign that are shown. */
export function publishedRows(state: ModelState, statement: Statement, stamp: number): ReadRow[] {
  if (!holds(state, statement)) return []
  const { staged_id, fold_id } = statement.query_params as { staged_id: string; fold_id: string }
  return (state.staged.get(staged_id) ?? [])
    .filter(row => isChange(state, row))
    .map(row => ({ ...row, foldId: BigInt(fold_id), updatedAt: newStamp(state, row.id, stamp) }))
}

export function recordSetAside(state: ModelState, statement: Statement): void {
  if (!holds(state, statement)) return
  const { campaign, is_set_aside, is_behind, failures, reason } = statement.query_params as {
    campaign: string
    is_set_aside: boolean
    is_behind: boolean
    failures: number
    reason: string
  }
  state.setAside.set(campaign, { isSetAside: is_set_aside, isBehind: is_behind, failures, reason })
}

export function setAsideRows({ setAside }: ModelState): object[] {
  return [...setAside].flatMap(([campaign, { isSetAside, ...row }]) =>
    isSetAside ? { campaign, ...row } : [],
  )
}

export function touchedSetAside({ batches }: ModelState, { query_params }: Statement): object[] {
  const { campaigns, ...range } = query_params as unknown as TouchedParameters & { campaigns: string[] }
  const touched = new Set(batchesIn(batches, range).flatMap(({ campaignIds }) => campaignIds))
  return campaigns.filter(campaign => touched.has(campaign)).map(campaign => ({ campaign }))
}

export function pieceCampaigns(state: ModelState, statement: Statement): object[] {
  const ids = touchedIds(state, statement)
  return [{ campaigns: ids.length, first: ids[0] ?? '' }]
}

/** The rows that get a new stamp. */
export function restampedRows(state: ModelState, statement: Statement, stamp: number): ReadRow[] {
  if (!holds(state, statement)) return []
  const { after, before, fold_id, pieces, piece } = statement.query_params as unknown as StepParameters & {
    after: string
    before: string
  }
  // Replaces cityHash64, which is not available here. The real engine is told to use this one too.
  const isOfPiece = (id: string) => Math.floor((crc32(id) * pieces) / 2 ** 32) === piece
  return [...state.campaigns.keys()]
    .toSorted()
    .flatMap(id => latestRow(state, id) ?? [])
    .filter(({ id, foldId }) => foldId > BigInt(after) && foldId < BigInt(before) && isOfPiece(id))
    .map(row => ({ ...row, foldId: BigInt(fold_id), updatedAt: Math.max(stamp, row.updatedAt + 1) }))
}

export function recordFold(state: ModelState, statement: Statement): void {
  if (!holds(state, statement)) return
  const { fold_id, folded } = statement.query_params as { fold_id: string; folded: Progress }
  state.folds.push({ foldId: BigInt(fold_id), folded })
}

export function recordClose(state: ModelState, statement: Statement): void {
  if (!holds(state, statement)) return
  const { closed_from: closedFrom, closed } = statement.query_params as {
    closed_from: number
    closed: number
  }
  state.closed = { closedFrom, closed }
}

/** `rows` tells only whether there are any. */
export function closedDays({ closed, campaigns }: ModelState): object[] {
  return [{ ...closed, rows: campaigns.size }]
}

/** The highest pair of epoch and holder that was taken. */
export function leaderOf({ epochs }: ModelState): { epoch: string; holder: string } {
  const { epoch, holder } = epochs.reduce((a, b) =>
    a.epoch > b.epoch || (a.epoch === b.epoch && a.holder > b.holder) ? a : b,
  )
  return { epoch: String(epoch), holder }
}

export function advanceFloor(state: ModelState, statement: Statement, startedAt: number): void {
  if (holds(state, statement)) state.floor = Math.max(startedAt, (state.floor ?? 0) + 1)
}

export function takeEpoch(state: ModelState, { query_params }: Statement): void {
  state.epochs.push({ epoch: latestEpoch(state) + 1n, holder: String(query_params?.holder) })
}

export function pendingBatches(state: ModelState, { query_params }: Statement): object[] {
  const folded = query_params?.folded as Progress
  const pending = state.batches.filter(({ projector, sequence }) => sequence > (folded[projector] ?? 0))
  return [...Map.groupBy(pending, ({ projector }) => projector)].map(([projector, batches]) => ({
    projector,
    sequence: Math.max(...batches.map(({ sequence }) => sequence)),
    campaigns: new Set(batches.flatMap(({ campaignIds }) => campaignIds)).size,
    keys: 0,
    oldestAt: 0,
  }))
}

export function progressRows({ folds }: ModelState): object[] {
  const progress = new Map<string, number>()
  for (const { folded } of folds) {
    for (const [projector, sequence] of Object.entries(folded)) {
      progress.set(projector, Math.max(progress.get(projector) ?? 0, sequence))
    }
  }
  return [...progress].map(([projector, sequence]) => ({ projector, sequence }))
}

export function confirmedFold({ folds }: ModelState): object[] {
  return [{ foldId: String(highest(folds.map(({ foldId }) => foldId))) }]
}

export function epochHolders(state: ModelState): object[] {
  const latest = latestEpoch(state)
  return state.epochs
    .filter(({ epoch }) => epoch === latest)
    .map(({ epoch, holder }) => ({ epoch: String(epoch), holder, ageMs: 0 }))
}

// The fence: the statement's epoch and holder are the highest pair that was taken.
function holds(state: ModelState, statement: Statement): boolean {
  const epoch = epochOf(statement)
  const { holder } = statement.query_params as { holder: string }
  return (
    state.epochs.some(taken => taken.epoch === epoch && taken.holder === holder) &&
    !state.epochs.some(taken => taken.epoch > epoch || (taken.epoch === epoch && taken.holder > holder))
  )
}

function latestEpoch({ epochs }: ModelState): bigint {
  return highest(epochs.map(({ epoch }) => epoch))
}

function highest(numbers: readonly bigint[]): bigint {
  return numbers.toSorted((a, b) => Number(a - b)).at(-1) ?? 0n
}

/** A piece is a range of the touched ids in order. */
export function touchedIds({ batches }: ModelState, { query_params }: Statement): string[] {
  const touched = query_params as unknown as TouchedParameters
  const { pieces, piece, campaign, except = [] } = touched
  const all = campaign ? [campaign] : batchesIn(batches, touched).flatMap(({ campaignIds }) => campaignIds)
  const ids = [...new Set(all)].filter(id => !except.includes(id)).toSorted()
  const place = (n: number) => Math.floor((ids.length * n) / pieces)
  return ids.slice(place(piece), place(piece + 1))
}

function batchesIn(
  batches: readonly BatchRow[],
  { from, to }: Pick<TouchedParameters, 'from' | 'to'>,
): readonly BatchRow[] {
  return batches.filter(
    ({ projector, sequence }) => sequence > (from[projector] ?? 0) && sequence <= (to[projector] ?? 0),
  )
}
