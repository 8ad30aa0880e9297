/** The statements of the fold in the model of ClickHouse. See services/projector/fold/sql. */
import type { Statement } from '../../../../services/tables/port.ts'
import type { Safeguards } from '../safeguards.ts'
import { isOfFirstBlock } from './engine.ts'
import {
  type HistoryMarks,
  latestRow,
  type ModelState,
  type ProgressRow,
  type ReadRow,
  standingRow,
} from './model-state.ts'
import { epochOf, type WriteKind } from './statement-kinds.ts'

/** Makes visible what a statement has computed. */
type Publish = (onlySome: boolean) => void

interface StepParameters {
  holder: string
  fold_id: string
}

/** Pending batches: for each of some runs, its last one that is folded, and its last one. */
interface RunParameters {
  projectors: string[]
  folded: number[]
  lasts: number[]
}

/** Which campaigns a fold is about: those of pending batches, or a single one. */
interface TouchedParameters extends StepParameters, RunParameters {
  pieces: number
  piece: number
  began: string
  campaign?: string
}

const nothing: Publish = () => {}

/** Computes what a statement writes. It starts now, when ClickHouse's clock shows `startedAt`. */
export function writtenBy(
  state: ModelState,
  safeguards: Safeguards,
  { statement, kind, startedAt }: { statement: Statement; kind: WriteKind; startedAt: number },
): Publish {
  const isLeading = () => holds(state, statement)
  switch (kind) {
    case 'take epoch':
      return takeEpoch(state, statement)
    case 'fold':
    case 'withdraw': {
      const rowsOf = kind === 'fold' ? foldedRows : withdrawnRows
      const stampOf = stampsOf(state, safeguards, startedAt)
      return !isLeading() && safeguards.fence ? nothing : shown(state, rowsOf(state, statement, stampOf))
    }
    case 'record folded':
      return isLeading() ? progress(state, foldedProgress(statement)) : nothing
    case 'record quarantine':
      return isLeading() && safeguards.quarantineRecord ? quarantined(state, statement) : nothing
    case 'advance watermark':
      return isLeading() ? nextWatermark(state, statement) : nothing
    case 'record noted':
      return isLeading() ? marked(state, statement) : nothing
    // They write nothing. There are no keys and no restores in the simulation, and it reads no day of the history.
    case 'note gap':
    case 'fold keys':
    case 'note days':
    case 'derive days':
      return nothing
    default:
      return kind satisfies never
  }
}

type StampOf = (id: string) => number

/** How a statement stamps what changed. */
function stampsOf(state: ModelState, { stampAtWatermark }: Safeguards, startedAt: number): StampOf {
  const stamp = stampAtWatermark ? Math.max(startedAt, state.watermark) : startedAt
  return id => Math.max(stamp, (latestRow(state, id)?.updatedAt ?? 0) + 1)
}

function shown({ campaigns }: ModelState, rows: readonly ReadRow[]): Publish {
  return onlySome => {
    for (const row of rows.filter(({ id }) => !onlySome || isOfFirstBlock(id)))
      campaigns.set(row.id, [...(campaigns.get(row.id) ?? []), row])
  }
}

function foldedRows(state: ModelState, statement: Statement, stampOf: StampOf): ReadRow[] {
  const { fold_id } = statement.query_params as unknown as StepParameters
  return touchedIds(state, statement).flatMap(id => {
    const campaign = state.ledger.get(id)
    if (campaign === undefined) return []
    const standing = standingRow(state, id)
    const isChange = campaign.isPublic
      ? standing?.campaign.content !== campaign.content
      : standing !== undefined
    const isDeleted = !campaign.isPublic
    return isChange ? { id, foldId: BigInt(fold_id), isDeleted, campaign, updatedAt: stampOf(id) } : []
  })
}

function withdrawnRows(state: ModelState, statement: Statement, stampOf: StampOf): ReadRow[] {
  const { fold_id } = statement.query_params as unknown as StepParameters
  return [...state.quarantine].flatMap(([id, { isQuarantined }]) => {
    const campaign = state.ledger.get(id)
    if (!isQuarantined || campaign?.isPublic !== false || !standingRow(state, id)) return []
    return { id, foldId: BigInt(fold_id), isDeleted: true, campaign, updatedAt: stampOf(id) }
  })
}

function progress(state: ModelState, rows: readonly ProgressRow[]): Publish {
  return () => {
    for (const row of rows) {
      const { projector, foldId } = row
      if ((state.progress.get(projector)?.foldId ?? 0n) <= foldId) state.progress.set(projector, row)
    }
  }
}

function foldedProgress({ query_params }: Statement): ProgressRow[] {
  const { fold_id, projectors, lasts } = query_params as unknown as StepParameters & RunParameters
  return projectors.map((projector, n) => ({ projector, sequence: lasts[n] ?? 0, foldId: BigInt(fold_id) }))
}

function quarantined({ quarantine }: ModelState, { query_params }: Statement): Publish {
  const { campaign, is_quarantined, failures, reason, fold_id } = query_params as {
    campaign: string
    is_quarantined: boolean
    failures: number
    reason: string
    fold_id: string
  }
  const row = { isQuarantined: is_quarantined, failures, reason, foldId: BigInt(fold_id) }
  return () => {
    if ((quarantine.get(campaign)?.foldId ?? 0n) <= row.foldId) quarantine.set(campaign, row)
  }
}

function nextWatermark(state: ModelState, { query_params }: Statement): Publish {
  return () => {
    state.watermark = Math.max(state.watermark, Number(query_params?.reached))
  }
}

function marked(state: ModelState, { query_params }: Statement): Publish {
  const { noted, derived, begun } = query_params as unknown as HistoryMarks
  return () => {
    if (noted >= state.marks.noted) state.marks = { noted, derived, begun }
  }
}

export function historyMarks({ marks, campaigns }: ModelState): object[] {
  const rows = [...campaigns.values()].flat()
  const since = (mark: number) => rows.filter(({ updatedAt }) => updatedAt >= mark).length
  return [{ ...marks, unnoted: since(marks.noted), underived: since(marks.derived) }]
}

function takeEpoch(state: ModelState, { query_params }: Statement): Publish {
  const row = { epoch: latestEpoch(state) + 1n, holder: String(query_params?.holder) }
  return () => void state.epochs.push(row)
}

/** Whether a statement's epoch and holder are the highest pair that was taken. */
function holds(state: ModelState, statement: Statement): boolean {
  const { epoch, holder } = leaderOf(state)
  return BigInt(epoch) === epochOf(statement) && holder === statement.query_params?.holder
}

/** The highest pair of epoch and holder that was taken. */
export function leaderOf({ epochs }: ModelState): { epoch: string; holder: string } {
  const { epoch, holder } = epochs.reduce(
    (a, b) => (a.epoch > b.epoch || (a.epoch === b.epoch && a.holder > b.holder) ? a : b),
    { epoch: 0n, holder: '' },
  )
  return { epoch: String(epoch), holder }
}

function latestEpoch(state: ModelState): bigint {
  return BigInt(leaderOf(state).epoch)
}

export function epochHolders(state: ModelState): object[] {
  const latest = latestEpoch(state)
  return state.epochs
    .filter(({ epoch }) => epoch === latest)
    .map(({ epoch, holder }) => ({ epoch: String(epoch), holder }))
    .toSorted((a, b) => (a.holder < b.holder ? 1 : -1))
}

export function holdsEpoch(state: ModelState, { query_params }: Statement): object[] {
  const { epoch, holder } = leaderOf(state)
  const holds = epoch === query_params?.epoch && holder === query_params?.holder
  return [{ holds: Number(holds) }]
}

export function quarantineRows({ quarantine, ledger }: ModelState): object[] {
  return [...quarantine].flatMap(([campaign, { isQuarantined, failures, reason }]) =>
    isQuarantined ? { campaign, failures, reason, isPublic: ledger.get(campaign)?.isPublic === true } : [],
  )
}

export function pieceCampaigns(state: ModelState, statement: Statement): object[] {
  const ids = touchedIds(state, statement)
  const first = ids[0] ?? ''
  return [{ campaigns: ids.length, first, isPublic: state.ledger.get(first)?.isPublic === true }]
}

export function pendingBatches(state: ModelState): object[] {
  const pending = unfolded(state)
  const campaigns = new Set(pending.flatMap(({ campaignIds }) => campaignIds)).size
  const byRun = [...Map.groupBy(pending, ({ projector }) => projector)]
  const runs = byRun.map(([projector, batches]) => {
    const sequences = batches.map(({ sequence }) => sequence)
    return [projector, Math.min(...sequences) - 1, Math.max(...sequences)] as const
  })
  const none = { keys: 0, isAgain: 0, oldestAt: 0, isOfBacklog: 0 }
  return [
    { ...none, batches: pending.length, campaigns, runs: runs.toSorted(([a], [b]) => (a < b ? -1 : 1)) },
  ]
}

function unfolded({ batches, progress }: ModelState) {
  return batches.filter(({ projector, sequence }) => sequence > (progress.get(projector)?.sequence ?? 0))
}

/** The touched campaigns of a piece, which is a range of them in order. */
export function touchedIds(state: ModelState, { query, query_params }: Statement): string[] {
  const parameters = query_params as unknown as TouchedParameters
  const { pieces, piece, campaign } = parameters
  const all = campaign === undefined ? pendingIds(state, query, parameters) : [campaign]
  const ids = [...new Set(all)].toSorted()
  const place = (n: number) => Math.floor((ids.length * n) / pieces)
  return ids.slice(place(piece), place(piece + 1))
}

function pendingIds(
  state: ModelState,
  query: string,
  { projectors, folded, lasts, began }: TouchedParameters,
): string[] {
  const isLeftOut = (id: string) => {
    const found = state.quarantine.get(id)
    return found?.isQuarantined && found.foldId < BigInt(began)
  }
  const ids = state.batches
    .filter(({ projector, sequence }) => {
      const run = projectors.indexOf(projector)
      return sequence > (folded[run] ?? 0) && sequence <= (lasts[run] ?? 0)
    })
    .flatMap(({ campaignIds }) => campaignIds)
  return query.includes('.quarantine') ? ids.filter(id => !isLeftOut(id)) : ids
}
