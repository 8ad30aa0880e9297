/**
 * The state of each rebuild, as its process writes it to the generation log with every heartbeat. It lets others watch a rebuild, and
 * lets a process continue after a kill.
 */
import type { Runtime } from '../runtime/runtime.ts'
import type { GenerationLog } from '../tables/generation-log.ts'
import { AttemptLost } from './attempts.ts'
import type { Differences } from './differences.ts'

/** The phases in their order. A rebuild ends in one of `endPhases`. */
export const workPhases = [
  'preparing',
  'reading log',
  'folding',
  'catching up',
  'verifying',
  'promoting',
] as const

/** `rebuilt`: the new generation is current, and the one before it is kept. */
export const endPhases = ['rebuilt', 'compared', 'dropped'] as const

export type WorkPhase = (typeof workPhases)[number]
export type Phase = WorkPhase | (typeof endPhases)[number]

export interface RebuildRequest {
  /** `rollback`: brings the generation from before up to date and makes it current again. */
  kind: 'rebuild' | 'rollback'
  /** Compare, and then drop the new tables. */
  isDry: boolean
  /** Promote although the current generation contains something that the history does not. */
  acceptsLoss: boolean
  /** Begin although the disk seems too small. */
  ignoresDisk: boolean
}

/** The progress of a phase. Amounts are in `unit`. */
export interface RebuildProgress {
  done: number
  of: number
  unit: 'records' | 'folds' | 'ranges'
  /** The rate of this phase, in amounts a second. */
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
  /** Records that were read, and how many of them were rejected. The last records of a killed run may be missing. */
  records: number
  rejects: number
  differences: Differences | null
  /** Whether every campaign of it was folded once. */
  isFolded: boolean
  /** The version of the program that read the history. All of it has to be read by the same rules. */
  program: string
  /** Why its process stopped, if it could write that. */
  failure: string | null
}

export interface RebuildState {
  id: string
  /** The highest one that worked on it. */
  attempt: number
  /** The one that it builds. */
  generation: number
  /** The process that wrote last. */
  run: string
  phase: Phase
  detail: RebuildDetail
  /** When it wrote last, and how long ago that is, ms, by ClickHouse's clock. After that clock stepped back, the age is negative. */
  writtenAt: string
  ageMs: number
}

/** The consumer that reads the log for a generation. */
export function consumerOf({ generation }: Pick<RebuildState, 'generation'>): string {
  return `generation-${generation}`
}

/** How often a rebuild sends a heartbeat, and for how long it counts as alive after that, ms. */
const beatMs = 2_000
const aliveMs = 10_000
const lookMs = 500

export function isWorking({ phase }: Pick<RebuildState, 'phase'>): boolean {
  return (workPhases as readonly string[]).includes(phase)
}

/** Whether its process has sent a heartbeat recently by ClickHouse's clock, and has not recorded a failure. */
function isRecent(state: RebuildState): boolean {
  return isWorking(state) && state.detail.failure === null && state.ageMs < aliveMs
}

/** Names the generation that is kept beside the current one, for a message. */
export function keptTables({ detail }: Pick<RebuildState, 'detail'>): string {
  return detail.request.kind === 'rebuild'
    ? 'the tables from before the rebuild'
    : 'the tables that the rollback replaced'
}

/** What the log has as JSON. */
type Written = Pick<RebuildState, 'id' | 'phase' | 'detail'>

/** The latest rebuild in its latest recorded state; `undefined` if there has never been one. */
export async function latestRebuild({ tables, base }: GenerationLog): Promise<RebuildState | undefined> {
  const [row] = await tables.rows<Omit<RebuildState, keyof Written> & { detail: string }>({
    query: `SELECT attempt, generation, run, detail, toString(written_at) AS writtenAt,
              toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(written_at) AS ageMs
            FROM ${base}.generation_log WHERE kind = 'beat' ORDER BY attempt DESC, written_at DESC LIMIT 1`,
  })
  return row && { ...row, ...(JSON.parse(row.detail) as Written) }
}

interface OwnerOptions extends Pick<Runtime, 'monotonicMs' | 'sleep'> {
  /** Whether no other process can work on these tables. */
  isAlone: boolean
}

/**
 * The latest rebuild, and whether another process works on it: its last heartbeat is followed by another one. If none follows for `aliveMs`
 * by the clock of this process, it is dead, however recent ClickHouse's clock makes it: that may have stepped back.
 */
export async function findOwner(
  place: GenerationLog,
  { isAlone, monotonicMs, sleep }: OwnerOptions,
): Promise<{ latest: RebuildState | undefined; isOwned: boolean }> {
  const first = await latestRebuild(place)
  const deadline = monotonicMs() + aliveMs
  for (let latest = first, askedAt = 0; ; latest = await latestRebuild(place)) {
    if (isAlone || !latest || !isRecent(latest)) return { latest, isOwned: false }
    if (latest.writtenAt !== first?.writtenAt) return { latest, isOwned: true }
    // An answer may come late: only a look that began after that time tells.
    if (askedAt >= deadline) return { latest, isOwned: false }
    await sleep(lookMs)
    askedAt = monotonicMs()
  }
}

/** The same for a report: it waits for the next heartbeat only if the age of the last one says nothing. */
export async function isAlive(
  place: GenerationLog,
  state: RebuildState,
  options: OwnerOptions,
): Promise<boolean> {
  if (state.ageMs < 0) return (await findOwner(place, options)).isOwned
  return isRecent(state) && !options.isAlone
}

/** The rebuild that is under way, also if its process died; for the metrics. */
export async function rebuildUnderWay(place: GenerationLog): Promise<RebuildState | undefined> {
  const state = await latestRebuild(place)
  return state && isWorking(state) ? state : undefined
}

/** Each heartbeat is later than the one before it, also if ClickHouse's clock steps back: the latest one counts. */
export async function writeRebuild(
  { tables, base }: GenerationLog,
  { id, phase, detail, run, attempt, generation }: Omit<RebuildState, 'writtenAt' | 'ageMs'>,
): Promise<void> {
  // Examples have texts of campaigns, which the log would keep for ever. Its process prints them.
  const differences = detail.differences && { ...detail.differences, examples: [] }
  const written: Written = { id, phase, detail: { ...detail, differences } }
  await tables.run({
    query: `INSERT INTO ${base}.generation_log (kind, generation, attempt, run, detail, written_at)
            SELECT 'beat', {generation:UInt32}, {attempt:UInt64}, {run:String}, {detail:String},
              greatest(now64(3, 'UTC'), max(log.written_at) + INTERVAL 1 MILLISECOND)
            FROM ${base}.generation_log AS log WHERE log.attempt = {attempt:UInt64}
            SETTINGS async_insert = 0`,
    query_params: { generation, attempt, run, detail: JSON.stringify(written) },
  })
}

type Amounts = Pick<RebuildProgress, 'done' | 'of' | 'unit'> & { lagRecords?: number }

export type RebuildTracker = ReturnType<typeof createTracker>

/** Tracks one run of a rebuild: its phase, its rate, and its heartbeats in the rebuild log. */
export function createTracker(
  generationLog: GenerationLog,
  begun: RebuildState,
  { onProgress, monotonicMs }: { onProgress: (state: RebuildState) => void; monotonicMs: () => number },
) {
  const state = structuredClone(begun)
  const { id, attempt, generation } = state
  /** How much was done, and when, as the phase began in this run. */
  let first: { done: number; at: number } | undefined
  let enteredAt = monotonicMs()
  let writing: Promise<unknown> = Promise.resolve()
  const lost = new AbortController()
  const beating = setInterval(() => void beat(), beatMs)

  /** Writes one after the other, so that the latest state is the last row. */
  function write(): Promise<void> {
    const done = writing.then(() => writeRebuild(generationLog, state))
    writing = done.catch(() => undefined)
    return done
  }

  async function beat(): Promise<void> {
    countTime()
    // A lost heartbeat does no harm: the next one follows.
    await write()
      .then(look)
      .catch(() => undefined)
  }

  /** Looks for a later attempt. A process that slept for some time was taken for dead, and both would read a part of the log. */
  async function look(): Promise<void> {
    const [row] = await generationLog.tables.rows<{ highest: number }>({
      query: `SELECT max(attempt) AS highest FROM ${generationLog.base}.generation_log`,
    })
    if (row && row.highest > attempt)
      lost.abort(new AttemptLost('another process took it over (rebuild status shows that one)'))
  }

  function countTime(): void {
    const at = monotonicMs()
    const phase = workPhases.find(name => name === state.phase)
    if (phase) state.detail.phaseMs[phase] = Math.round((state.detail.phaseMs[phase] ?? 0) + at - enteredAt)
    enteredAt = at
  }

  return {
    id,
    attempt,
    generation,
    /** What changes in it is recorded with the next heartbeat, or before. */
    detail: state.detail,
    /** Aborted with `AttemptLost` soon after another process took over. */
    signal: lost.signal,

    /** Begins a phase. It is in the log when this resolves. */
    async enter(phase: Phase): Promise<void> {
      countTime()
      state.phase = phase
      state.detail.progress = null
      first = undefined
      await write()
      await look()
      onProgress(structuredClone(state))
    },

    progress({ done, of, unit, lagRecords = 0 }: Amounts): void {
      first ??= { done, at: monotonicMs() }
      const seconds = (monotonicMs() - first.at) / 1_000
      const rate = seconds > 0 ? (done - first.done) / seconds : 0
      const etaSeconds = of <= done ? 0 : rate > 0 ? Math.ceil((of - done) / rate) : null
      state.detail.progress = { done, of, unit, lagRecords, perSecond: Math.round(rate), etaSeconds }
      onProgress(structuredClone(state))
    },

    /** Stops the heartbeats. If there was a failure, writes it to the log. */
    async close(failure?: string): Promise<void> {
      clearInterval(beating)
      countTime()
      if (failure !== undefined) {
        state.detail.failure = failure
        await write().catch(() => undefined)
      }
      await writing
    },
  }
}
