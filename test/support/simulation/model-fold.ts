/** The folder's statements, as the model of ClickHouse carries them out. See services/projector/sql. */
import { crc32 } from 'node:zlib'
import type { Statement } from '../../../services/shared/tables/port.ts'
import { latestRow, type ModelState, type ReadRow, standingRow } from './model-state.ts'
import { epochOf } from './statement-kinds.ts'

interface StepParameters {
  holder: string
  fold_id: string
  pieces: number
  piece: number
}

type Progress = Record<string, number>

/** The rows that a fold of campaigns writes. */
export function foldedRows(state: ModelState, statement: Statement, startedAt: number): ReadRow[] {
  if (!holds(state, statement)) return []
  const { from, to, fold_id } = statement.query_params as unknown as StepParameters &
    Record<'from' | 'to', Progress>
  return touchedIds(state, statement.query_params as unknown as StepParameters, { from, to }).flatMap(id => {
    const campaign = state.ledger.get(id)
    const standing = standingRow(state, id)
    if (campaign === undefined) return []
    const isDeleted = !campaign.isPublic
    if (isDeleted ? standing === undefined : standing?.campaign.content === campaign.content) return []
    return { id, foldId: BigInt(fold_id), updatedAt: startedAt, isDeleted, campaign }
  })
}

/** The rows that a statement stamps anew. */
export function restampedRows(state: ModelState, statement: Statement, startedAt: number): ReadRow[] {
  if (!holds(state, statement)) return []
  const { after, before, fold_id, pieces, piece } = statement.query_params as unknown as StepParameters & {
    after: string
    before: string
  }
  // In the place of cityHash64, which nobody has here; the real engine is told to use this one too.
  const isOfPiece = (id: string) => Math.floor((crc32(id) * pieces) / 2 ** 32) === piece
  return [...state.campaigns.keys()]
    .toSorted()
    .flatMap(id => latestRow(state, id) ?? [])
    .filter(({ id, foldId }) => foldId > BigInt(after) && foldId < BigInt(before) && isOfPiece(id))
    .map(row => ({ ...row, foldId: BigInt(fold_id), updatedAt: startedAt }))
}

export function recordFold(state: ModelState, statement: Statement): void {
  if (!holds(state, statement)) return
  const { fold_id, folded } = statement.query_params as { fold_id: string; folded: Progress }
  state.folds.push({ foldId: BigInt(fold_id), folded })
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
    campaigns: batches.reduce((sum, { campaignIds }) => sum + campaignIds.length, 0),
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

// The fence: the statement's epoch and holder are the highest pair of all that were taken.
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

// A piece is a range of the touched ids in order.
function touchedIds(
  { batches }: ModelState,
  { pieces, piece }: StepParameters,
  { from, to }: { from: Progress; to: Progress },
): string[] {
  const touched = batches
    .filter(
      ({ projector, sequence }) => sequence > (from[projector] ?? 0) && sequence <= (to[projector] ?? 0),
    )
    .flatMap(({ campaignIds }) => campaignIds)
  const ids = [...new Set(touched)].toSorted()
  const place = (n: number) => Math.floor((ids.length * n) / pieces)
  return ids.slice(place(piece), place(piece + 1))
}
