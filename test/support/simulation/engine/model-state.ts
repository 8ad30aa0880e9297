/** The private tables in the model of ClickHouse. Superseded rows stay until they are merged. */
import type { TableInsert } from '../../../../services/tables/port.ts'
import { type DecodedRow, decodeRows } from '../../clickhouse/row-binary.ts'

/** The latest state of a campaign, by the columns of the ledger. */
export interface LedgerCampaign {
  version: bigint
  isPublic: boolean
  columns: Readonly<Record<string, unknown>>
  /** Everything in it that a reader can see, as text. */
  content: string
}

/** How far the batches of a run of a projector are folded. */
export interface ProgressRow {
  projector: string
  sequence: number
  foldId: bigint
}

/** A row of the read table. */
export interface ReadRow {
  id: string
  foldId: bigint
  /** Unix milliseconds. */
  updatedAt: number
  isDeleted: boolean
  campaign: LedgerCampaign
}

export type ModelState = ReturnType<typeof emptyState>
export type HistoryMarks = ModelState['marks']

interface Quarantined {
  isQuarantined: boolean
  failures: number
  reason: string
  foldId: bigint
}

interface Batch {
  projector: string
  sequence: number
  campaignIds: readonly string[]
}

export function emptyState() {
  return {
    ledger: new Map<string, LedgerCampaign>(),
    batches: [] as Batch[],
    epochs: [] as { epoch: bigint; holder: string }[],
    /** By projector, and by what they say. Of each, the row of the highest fold. */
    progress: new Map<string, ProgressRow>(),
    /** The highest watermark that was written, Unix ms. */
    watermark: 0,
    /** How far the history is written: Unix ms, and the first day. */
    marks: { noted: 0, derived: 0, begun: 0 },
    /** The rows of each campaign, in the order in which they became visible. */
    campaigns: new Map<string, ReadRow[]>(),
    /** What is recorded of each campaign in quarantine, or of one that was. */
    quarantine: new Map<string, Quarantined>(),
  }
}

/** What FINAL leaves of a campaign: the row of the highest fold, unless that is deleted. */
export function standingRow(state: ModelState, id: string): ReadRow | undefined {
  const last = latestRow(state, id)
  return last?.isDeleted ? undefined : last
}

/** A campaign's row of the highest fold. It may say that the campaign is no longer public. */
export function latestRow({ campaigns }: ModelState, id: string): ReadRow | undefined {
  const rows = campaigns.get(id) ?? []
  return rows.reduce<ReadRow | undefined>((a, b) => (a && a.foldId > b.foldId ? a : b), undefined)
}

/** All public campaigns, in the order of their ids. */
export function standingRows(state: ModelState): ReadRow[] {
  return [...state.campaigns.keys()].toSorted().flatMap(id => standingRow(state, id) ?? [])
}

/** Adds the rows of an insert of the projector. Throws on a table that is not in the simulation. */
export function insertInto(state: ModelState, insert: TableInsert): void {
  const { table } = insert
  const rows = decodeRows(insert)
  if (table.endsWith('.campaign_ledger')) for (const row of rows) addCampaign(state, row)
  else if (table.endsWith('.batch_log')) for (const row of rows) state.batches.push(batchOf(row))
  else throw new Error(`the simulation has no table ${table}`)
}

// ReplacingMergeTree(version): of two rows with the same version, the later one stays.
function addCampaign({ ledger }: ModelState, row: DecodedRow): void {
  const { campaign_id: id, version, is_public: isPublic, ...columns } = row
  const known = ledger.get(String(id))
  const campaign = {
    version: BigInt(String(version)),
    isPublic: isPublic === true,
    columns,
    content: JSON.stringify(columns, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  }
  if (known === undefined || known.version <= campaign.version) ledger.set(String(id), campaign)
}

function batchOf(row: DecodedRow): Batch {
  return {
    projector: String(row.projector),
    sequence: Number(row.sequence),
    campaignIds: row.campaign_ids as string[],
  }
}
