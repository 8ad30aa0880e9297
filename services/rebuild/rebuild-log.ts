/**
 * The rebuild log: what rebuilds are doing, for those who watch, for the one that goes on after a kill, and so that no two
 * are at it at once.
 */
import type { Position } from '../shared/event-log/port.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { Differences } from './differences.ts'
import type { TableIds } from './generation.ts'

/** In their order; a rebuild ends in one of `endPhases`. */
export const workPhases = [
  'preparing',
  'reading files',
  'reading log',
  'folding',
  'catching up',
  'verifying',
  'exchanging',
  'finishing',
] as const

/** `rebuilt`: it is live, and the generation before is kept. */
export const endPhases = ['rebuilt', 'compared', 'aborted', 'dropped'] as const

export type WorkPhase = (typeof workPhases)[number]
export type Phase = WorkPhase | (typeof endPhases)[number]

export interface RebuildRequest {
  /** `back`: to the generation before, which is brought up to date and exchanged again. */
  kind: 'rebuild' | 'back'
  /** Archived events that come before the log's, in their order. */
  files: string[]
  /** Read the log from what was appended at this time on, Unix ms; null: from its start. */
  fromTime: number | null
  /** Compare and drop. */
  isDry: boolean
  /** Exchange although the live model knows what the history does not tell any more. */
  acceptsLoss: boolean
  /** Begin although the disk seems too small. */
  ignoresDisk: boolean
}

/** How far a phase is. Amounts are records where there is no other unit. */
export interface RebuildProgress {
  done: number
  of: number
  unit: 'bytes' | 'records' | 'folds' | 'ranges'
  /** Amounts a second, lately. */
  perSecond: number
  /** Null: no telling. */
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
  /** Records that were read, and of these such that are no events; what a killed run read last is not counted. */
  records: number
  rejects: number
  /** The sum of the offsets at which it began in the log. */
  logStart: number | null
  differences: Differences | null
  /** From the exchange on: the tables that became live. */
  tableIds: TableIds | null
  /** Of an exchange that changed many rows: ClickHouse's clock before it, until all of them are stamped. */
  unstampedSince: string | null
  /** Everything before these positions is in the generation before. */
  positions: Position[] | null
  /** Of a `back`: the rebuild that it takes back. */
  takesBack: string | null
  /** The version of the program that read the history: one generation is of one rule. */
  program: string
  /** Why its process stopped, where it could say so. */
  failure: string | null
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

/** Another process is at it. */
export class RebuildInProgress extends Error {
  override name = 'RebuildInProgress'
}

/** The consumer that reads the log for a rebuild. */
export function consumerOf(id: string): string {
  return `rebuild-${id}`
}

/** How often a rebuild gives a sign of life, and for how long after it counts as alive, ms. */
export const beatMs = 2_000
export const aliveMs = 10_000

export function isWorking({ phase }: Pick<RebuildState, 'phase'>): boolean {
  return (workPhases as readonly string[]).includes(phase)
}

/** Whether the rebuilt generation may be the live one already: then it is carried through, whoever asks for its end. */
export function isCommitted({ phase }: Pick<RebuildState, 'phase'>): boolean {
  return phase === 'exchanging' || phase === 'finishing'
}

/** Whether its process has shown a sign of life lately, and has not said why it stopped. */
export function isAlive(state: RebuildState): boolean {
  return isWorking(state) && state.detail.failure === null && state.ageMs < aliveMs
}

// The run of whoever asks for the end of another's.
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

/** The latest rebuild, as far as it has told; `undefined` where there never was one. */
export async function latestRebuild(tables: Tables, { model }: Databases): Promise<RebuildState | undefined> {
  const [row] = await tables.rows<Row>({
    query: `SELECT rebuild_id AS id, run, phase, detail, toString(written_at) AS writtenAt,
              toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(written_at) AS ageMs,
              rebuild_id IN (SELECT rebuild_id FROM ${model}.rebuild_log WHERE phase = 'aborting') AS isAborting
            FROM ${model}.rebuild_log WHERE phase != 'aborting' ORDER BY written_at DESC LIMIT 1`,
  })
  if (!row) return undefined
  return { ...row, detail: JSON.parse(row.detail) as RebuildDetail, isAborting: Number(row.isAborting) === 1 }
}

export async function writeRebuild(
  tables: Tables,
  { model }: Databases,
  { id, run, phase, detail }: Pick<RebuildState, 'id' | 'run' | 'phase' | 'detail'>,
): Promise<void> {
  await insert(tables, model, [id, run, phase, JSON.stringify(detail)])
}

/** Asks the process that is at it to give up. */
export async function askToAbort(tables: Tables, { model }: Databases, id: string): Promise<void> {
  await insert(tables, model, [id, asked, 'aborting', ''])
}

/** Another process that is at it too, where that one is to go on of the two. */
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
    return isWorking({ phase }) && (JSON.parse(detail) as RebuildDetail).failure === null
  })
  return alive.find(rival => rival.run < run)?.run
}

async function insert(tables: Tables, model: string, row: readonly string[]): Promise<void> {
  await tables.insert({
    table: `${model}.rebuild_log`,
    columns: ['rebuild_id', 'run', 'phase', 'detail'],
    format: 'JSONCompactEachRow',
    body: JSON.stringify(row),
  })
}
