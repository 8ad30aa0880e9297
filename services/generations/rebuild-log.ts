/**
 * The rebuild log: the state of each rebuild. It lets others watch a rebuild, lets a process continue after a kill, and keeps
 * two processes from working at the same time.
 */
import type { Databases, Tables } from '../tables/port.ts'
import { encodeRows } from '../tables/row-binary.ts'
import type { TableIds } from './build/shadow-tables.ts'
import type { Differences } from './compare/differences.ts'

/** The phases in their order. A rebuild ends in one of `endPhases`. */
export const workPhases = [
  'preparing',
  'reading log',
  'folding',
  'catching up',
  'verifying',
  'swapping',
] as const

/** `rebuilt`: the new tables are live, and the previous ones are kept. */
export const endPhases = ['rebuilt', 'compared', 'aborted', 'dropped'] as const

export type WorkPhase = (typeof workPhases)[number]
export type Phase = WorkPhase | (typeof endPhases)[number]

export interface RebuildRequest {
  /** `rollback`: brings the previous tables up to date and swaps them in again. */
  kind: 'rebuild' | 'rollback'
  /** Read only what was appended to the log at this time or later, Unix ms; null: from its start. */
  fromTime: number | null
  /** Compare, and then drop the new tables. */
  isDry: boolean
  /** Swap although the live tables contain something that the history does not. */
  acceptsLoss: boolean
  /** Begin although the disk seems too small. */
  ignoresDisk: boolean
}

/** The progress of a phase. Amounts are in `unit`. */
export interface RebuildProgress {
  done: number
  of: number
  unit: 'records' | 'folds' | 'ranges'
  /** The current rate, in amounts a second. */
  perSecond: number
  /** Null: not known yet. */
  etaSeconds: number | null
  /** Records of the log that are not read yet. */
  lagRecords: number
}

export interface RebuildDetail {
  request: RebuildRequest
  /** ISO 8601. */
  startedAt: string
  /** How long each phase took, ms, over all runs. */
  phaseMs: Partial<Record<WorkPhase, number>>
  progress: RebuildProgress | null
  /** What it waits for now, if it is not work of its own. */
  waitsFor?: string | null
  /** Records that were read, and how many of them were rejected. The last records of a killed run may be missing. */
  records: number
  rejects: number
  /** The sum of the offsets at which it began to read the log. */
  logStart: number | null
  differences: Differences | null
  /** Set before the swap: the ids of the tables that become live. On a cluster: null. */
  tableIds: TableIds | null
  /** Set if the swap changed many rows: ClickHouse's clock before the swap, until all these rows are stamped. */
  unstampedSince: string | null
  /** On a cluster: the swap of each shard, by the shard's name. */
  shards?: Readonly<Record<string, SwapRecord>>
  /** The version of the program that read the history. All of it has to be read by the same rules. */
  program: string
  /** Why its process stopped, if it could write that. */
  failure: string | null
}

/** What is recorded before a swap. */
export type SwapRecord = Pick<RebuildDetail, 'tableIds' | 'unstampedSince'>

/** The swap of this shard, or of the only server (null). */
export function swapOf(detail: RebuildDetail, shard: string | null): SwapRecord {
  if (shard === null) return detail
  return detail.shards?.[shard] ?? { tableIds: null, unstampedSince: null }
}

/** The detail's fields with this swap recorded. */
export function withSwap(
  detail: RebuildDetail,
  shard: string | null,
  swap: SwapRecord,
): Partial<RebuildDetail> {
  return shard === null ? swap : { shards: { ...detail.shards, [shard]: swap } }
}

export interface RebuildState {
  id: string
  /** The process that wrote last. */
  run: string
  phase: Phase
  detail: RebuildDetail
  /** When it wrote last, and how long ago that is, ms, by ClickHouse's clock. */
  writtenAt: string
  ageMs: number
  isAborting: boolean
}

/** Another process works on a rebuild. */
export class RebuildInProgress extends Error {
  override name = 'RebuildInProgress'
}

/** The consumer that reads the log for a rebuild. */
export function consumerOf(id: string): string {
  return `rebuild-${id}`
}

/** How often a rebuild gives a sign of life, and for how long it counts as alive after that, ms. */
export const beatMs = 2_000
export const aliveMs = 10_000

export function isWorking({ phase }: Pick<RebuildState, 'phase'>): boolean {
  return (workPhases as readonly string[]).includes(phase)
}

/** Whether the rebuilt tables may already be live. Then the rebuild has to be completed, and cannot be given up. */
export function isCommitted({ phase }: Pick<RebuildState, 'phase'>): boolean {
  return phase === 'swapping'
}

/** Whether its process has given a sign of life recently, and has not recorded a failure. */
export function isAlive(state: RebuildState): boolean {
  return isWorking(state) && state.detail.failure === null && state.ageMs < aliveMs
}

/** Names the tables that are kept beside the live ones, for a message. */
export function keptTables({ detail, isAborting }: Pick<RebuildState, 'detail' | 'isAborting'>): string {
  if (detail.request.kind === 'rebuild') return 'the tables from before the rebuild'
  // A rollback that was given up leaves the tables that were kept before it.
  return isAborting ? 'the previous tables' : 'the tables that the rollback replaced'
}

// The `run` of rows that ask another process to give up.
const asked = 'asked'

interface Row {
  id: string
  run: string
  phase: Phase
  detail: string
  writtenAt: string
  ageMs: number
  isAborting: number
}

/** The latest rebuild in its latest recorded state; `undefined` if there has never been one. */
export async function latestRebuild(tables: Tables, { model }: Databases): Promise<RebuildState | undefined> {
  const [row] = await tables.rows<Row>({
    query: `SELECT rebuild_id AS id, run, phase, detail, toString(written_at) AS writtenAt,
              toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(written_at) AS ageMs,
              rebuild_id GLOBAL IN (SELECT rebuild_id FROM ${model}.rebuild_log WHERE phase = 'aborting') AS isAborting
            FROM ${model}.rebuild_log WHERE phase != 'aborting' ORDER BY written_at DESC LIMIT 1`,
  })
  if (!row) return undefined
  return {
    ...row,
    detail: detailOf(row.detail),
    isAborting: Number(row.isAborting) === 1,
  }
}

/** The rebuild that is under way, also if its process died; for the metrics. */
export async function rebuildUnderWay(
  tables: Tables,
  databases: Databases,
): Promise<{ phase: Phase; silentMs: number } | undefined> {
  const state = await latestRebuild(tables, databases)
  return state && isWorking(state) ? { phase: state.phase, silentMs: state.ageMs } : undefined
}

function detailOf(text: string): RebuildDetail {
  return JSON.parse(text) as RebuildDetail
}

export async function writeRebuild(
  tables: Tables,
  { model }: Databases,
  { id, run, phase, detail }: Pick<RebuildState, 'id' | 'run' | 'phase' | 'detail'>,
): Promise<void> {
  await insert(tables, model, [id, run, phase, JSON.stringify(detail)])
}

/** Asks the process that works on the rebuild to give up. */
export async function askToAbort(tables: Tables, { model }: Databases, id: string): Promise<void> {
  await insert(tables, model, [id, asked, 'aborting', ''])
}

/** The run of another process that works on a rebuild at the same time, if this process has to yield to it. */
export async function rivalOf(
  tables: Tables,
  { model }: Databases,
  run: string,
): Promise<string | undefined> {
  const rivals = await tables.rows<{ run: string; phase: Phase; detail: string }>({
    query: `SELECT run, argMax(phase, written_at) AS phase, argMax(detail, written_at) AS detail
            FROM ${model}.rebuild_log
            WHERE run NOT IN ({run:String}, '${asked}') AND written_at > now64(3, 'UTC') - INTERVAL ${aliveMs} MILLISECOND
            GROUP BY run ORDER BY run`,
    query_params: { run },
  })
  const alive = rivals.filter(({ phase, detail }) => {
    return isWorking({ phase }) && detailOf(detail).failure === null
  })
  return alive.find(rival => rival.run < run)?.run
}

const columns = [
  { name: 'rebuild_id', type: 'String' },
  { name: 'run', type: 'String' },
  { name: 'phase', type: 'LowCardinality(String)' },
  { name: 'detail', type: 'String' },
]

async function insert(tables: Tables, model: string, row: readonly string[]): Promise<void> {
  await tables.insert({ table: `${model}.rebuild_log`, columns, rows: encodeRows(columns, [row]) })
}
