/** The private tables as the model of ClickHouse keeps them: rows that are superseded stay until they are merged. */
import type { TableInsert } from '../../../services/shared/tables/port.ts'

/** The latest state of a campaign, by the columns of the ledger. */
export interface LedgerCampaign {
  version: bigint
  isPublic: boolean
  columns: Readonly<Record<string, unknown>>
  /** All of it that a reader can see, as text. */
  content: string
}

export interface BatchRow {
  projector: string
  sequence: number
  campaignIds: readonly string[]
}

export interface EpochRow {
  epoch: bigint
  holder: string
}

export interface FoldRow {
  foldId: bigint
  folded: Readonly<Record<string, number>>
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

export interface ModelState {
  ledger: Map<string, LedgerCampaign>
  batches: BatchRow[]
  epochs: EpochRow[]
  folds: FoldRow[]
  /** Of each campaign, in the order in which they became visible. */
  campaigns: Map<string, ReadRow[]>
}

export function emptyState(): ModelState {
  return { ledger: new Map(), batches: [], epochs: [], folds: [], campaigns: new Map() }
}

/** What FINAL leaves of a campaign: the row of the highest fold, unless that is deleted. */
export function standingRow(state: ModelState, id: string): ReadRow | undefined {
  const last = latestRow(state, id)
  return last?.isDeleted ? undefined : last
}

/** A campaign's row of the highest fold, which may say that it left the public. */
export function latestRow({ campaigns }: ModelState, id: string): ReadRow | undefined {
  const rows = campaigns.get(id) ?? []
  return rows.reduce<ReadRow | undefined>((a, b) => (a && a.foldId > b.foldId ? a : b), undefined)
}

/** All public campaigns, in the order of their ids. */
export function standingRows(state: ModelState): ReadRow[] {
  return [...state.campaigns.keys()].toSorted().flatMap(id => standingRow(state, id) ?? [])
}

/** Adds the rows of an insert that the projector makes. Throws on a table that the simulation has no part of. */
export function insertInto(state: ModelState, { table, columns, body }: TableInsert): void {
  const rows = body
    .trimEnd()
    .split('\n')
    .map(line => Object.fromEntries((JSON.parse(line) as unknown[]).map((value, at) => [columns[at], value])))
  if (table.endsWith('.campaign_ledger')) for (const row of rows) addCampaign(state, row)
  else if (table.endsWith('.batch_log')) for (const row of rows) state.batches.push(batchOf(row))
  else throw new Error(`the simulation has no table ${table}`)
}

type Row = Record<string, unknown>

// ReplacingMergeTree(version): of two rows of one version the later one stays.
function addCampaign({ ledger }: ModelState, row: Row): void {
  const { campaign_id: id, version, is_public: isPublic, ...columns } = row
  const known = ledger.get(String(id))
  const campaign = {
    version: BigInt(String(version)),
    isPublic: isPublic === true,
    columns,
    content: JSON.stringify(columns),
  }
  if (known === undefined || known.version <= campaign.version) ledger.set(String(id), campaign)
}

function batchOf(row: Row): BatchRow {
  return {
    projector: String(row.projector),
    sequence: Number(row.sequence),
    campaignIds: row.campaign_ids as string[],
  }
}
