/** What happens in one world of the simulation, drawn from its seed before anything runs. Times are ms from its start. */
import { chance, intBetween, pick, pickWeighted, type Random, randomOf } from '../runner/random.ts'
import { drawHeavyCampaign, type HeavyCampaign } from './heavy-campaign.ts'

/** The whole state of a campaign at a time. A newer version replaces it. */
export interface CampaignChange {
  id: string
  version: number
  /** Null: deleted for good. */
  state: { status: 'LIVE' | 'FUNDED' | 'SUSPENDED'; title: string; launchDay: number } | null
}

/** Changes that a projector gets at the same time. */
export interface ChangeBatch {
  at: number
  projector: number
  changes: readonly CampaignChange[]
}

/** A process that folds. While it leads, it takes the epoch. It may die or pause at any point. */
export interface FoldWorkerPlan {
  leadsFrom: number
  /** It may take a while until it knows that another process leads. */
  leadsUntil: number
  /** It dies here. */
  diesAt: number
  /** It pauses for a while, like a process in swap or on a suspended machine, and then continues without noticing. */
  pausesAt: number
  pausesUntil: number
}

export type PollerPlan = ReturnType<typeof drawPoller>

/**
 * The character of a world. Coarse: much happens at the same time. Slow: walks take so long that the platform changes under them.
 * Late: many statements arrive after a new leader has begun, and pollers come often.
 */
export const climates = ['mixed', 'coarse', 'slow', 'late'] as const
export type Climate = (typeof climates)[number]

export type Scenario = ReturnType<typeof drawScenario>

export const queryProcesses = 2
/** How long a fold of several campaigns may take. */
export const foldMsMax = 2_500
const never = Number.POSITIVE_INFINITY
// The first fold worker acquires leadership and folds the platform's initial state before anything changes.
const changesFromMs = 7_000
// By then the initial state is older than any watermark, so only the first walk delivers it.
const walksFromMs = 18_000
const changesSpanMs = 36_000

export function climateOf(seed: number): Climate {
  return climates[seed % climates.length] ?? 'mixed'
}

export function drawScenario(seed: number) {
  const random = randomOf('simulation', seed)
  const climate = climateOf(seed)
  const heavy = drawHeavyCampaign(random, changesFromMs, changesSpanMs)
  return {
    seed,
    /** Unix ms. Some worlds begin shortly before midnight, UTC. */
    startsAt: drawStart(random),
    climate,
    ...drawPace(random, climate),
    /** Steps of ClickHouse's clock; a negative one sets it back. */
    clockSteps: chance(random, 0.5) ? drawClockSteps(random) : [],
    idleMs: pick(random, [500, 1_000]),
    campaignsPerStatementMax: pick(random, [3, 1_000]),
    changesEndAt: changesSpanMs,
    batches: drawBatches(random, climate, heavy),
    /** When everything so far is delivered again, by a projector that has lost its position. */
    replaysAt: chance(random, 0.3) ? [intBetween(random, changesFromMs, changesSpanMs)] : [],
    foldWorkers: drawFoldWorkers(random, climate === 'mixed' ? [1, 2, 2, 3] : [1, 1, 2]),
    pollers: drawPollerKinds(random, climate).map(kind => drawPoller(random, kind, climate)),
    /** A campaign that is too heavy for the common fold. It may be withdrawn. */
    heavy,
    /** Whether the query processes share their caches. */
    sharesCaches: chance(random, climate === 'slow' ? 0.8 : 0.5),
    /** When a query process loses its caches, and which one. */
    cacheLosses: Array.from({ length: intBetween(random, 0, 2) }, () => ({
      at: intBetween(random, changesFromMs, changesSpanMs),
      process: intBetween(random, 0, queryProcesses - 1),
    })),
    /** How far the query processes' clocks differ from ClickHouse's. */
    clockSkewsMs: Array.from({ length: queryProcesses }, () => intBetween(random, -300, 300)),
  }
}

/** In half of the worlds the UTC day ends while campaigns change. */
function drawStart(random: Random): number {
  if (chance(random, 0.5)) return Date.parse('2026-03-01T12:00:00.000Z')
  return Date.parse('2026-03-02T00:00:00.000Z') - intBetween(random, 0, changesSpanMs)
}

interface Pace {
  /** All waits are rounded to it. A coarse tick makes many things happen at the same time. */
  tickMs: number
  /** Which of those that wake at the same time is woken first. */
  wakingOrder: 'oldest first' | 'newest first' | 'drawn'
  /** The longest way over the network, of a request or a statement. */
  wayMsMax: number
  listCacheMs: number
  /** Share of statements that have a fault, until the changes are over. */
  trouble: number
}

function drawPace(random: Random, climate: Climate): Pace {
  switch (climate) {
    case 'mixed':
      return {
        tickMs: pick(random, [1, 500]),
        wayMsMax: 20,
        listCacheMs: pick(random, [5_000, 10_000, 30_000]),
        wakingOrder: pick(random, ['oldest first', 'newest first', 'drawn']),
        trouble: pick(random, [0, 0.2, 0.4, 0.6]),
      }
    case 'coarse':
      return {
        tickMs: 500,
        wakingOrder: 'newest first',
        wayMsMax: 20,
        listCacheMs: 5_000,
        trouble: pick(random, [0.05, 0.5]),
      }
    case 'slow':
      return {
        tickMs: 1,
        wakingOrder: 'drawn',
        wayMsMax: 250,
        listCacheMs: 10_000,
        trouble: pick(random, [0, 0.1]),
      }
    case 'late':
      return {
        tickMs: 1,
        wakingOrder: 'drawn',
        wayMsMax: 80,
        listCacheMs: 3_000,
        trouble: 0.5,
      }
    default:
      return climate satisfies never
  }
}

// Some are far back. One forward is always undone; with two hours, the fold stops until then.
function drawClockSteps(random: Random): { at: number; byMs: number }[] {
  const back = Array.from({ length: intBetween(random, 1, 3) }, () => ({
    at: intBetween(random, changesFromMs, changesSpanMs),
    byMs: -intBetween(random, 500, pick(random, [2_000, 20_000])),
  }))
  if (chance(random, 0.5)) return back
  const at = intBetween(random, changesFromMs, changesSpanMs)
  const byMs = intBetween(random, 500, pick(random, [20_000, 7_200_000]))
  return [...back, { at, byMs }, { at: at + intBetween(random, 500, 10_000), byMs: -byMs }]
}

// Each campaign changes about once after it has come, so a missed change is seldom hidden by a later one.
function drawBatches(random: Random, climate: Climate, heavy: HeavyCampaign | undefined): ChangeBatch[] {
  const isSlow = climate === 'slow'
  const fromMs = isSlow ? walksFromMs : changesFromMs
  // A walk that took longer than a cache period would never be complete.
  const count = isSlow ? intBetween(random, 8, 11) : intBetween(random, 6, 18)
  const latest = new Map<string, CampaignChange>()
  const change = (id: string, isLeaving = false): CampaignChange => {
    const version = (latest.get(id)?.version ?? 0) + 1
    const before = latest.get(id)?.state
    const next = { id, version, state: isLeaving ? null : nextState(random, before, version) }
    latest.set(id, next)
    return next
  }
  const ids = Array.from({ length: count }, (_, n) => `c${n}`)
  const batches: ChangeBatch[] = [{ at: 0, projector: 0, changes: ids.map(id => change(id)) }]
  const unchanged = ids.toSorted(() => random() - 0.5)
  const changes = intBetween(random, Math.ceil(count / 2), count)
  for (let n = 0; n < changes; n++) {
    const at = intBetween(random, fromMs, changesSpanMs)
    batches.push({ at, projector: intBetween(random, 0, 1), changes: [] })
  }
  const ofHeavy = heavy && { at: heavy.changesAt, projector: 0, changes: [] }
  if (ofHeavy) batches.push(ofHeavy)
  batches.sort((a, b) => a.at - b.at)
  return batches.map(batch => {
    if (batch.changes.length > 0) return batch
    if (heavy && batch === ofHeavy) return { ...batch, changes: [change(heavy.id, heavy.isLeaving)] }
    const own = Array.from({ length: intBetween(random, 1, 2) }, () =>
      change(unchanged.pop() ?? pick(random, ids)),
    )
    // An old state that comes late changes nothing.
    const stale = chance(random, 0.1) ? pick(random, batches[0]?.changes ?? []) : undefined
    return { ...batch, changes: stale ? [...own, stale] : own }
  })
}

function nextState(
  random: Random,
  before: CampaignChange['state'] | undefined,
  version: number,
): CampaignChange['state'] {
  if (before === null) return null
  const title = `version ${version}`
  const state = before ?? { status: 'LIVE', title, launchDay: intBetween(random, 0, 300) }
  if (before === undefined && chance(random, 0.9)) return state
  if (state.status === 'SUSPENDED')
    return { ...state, title, status: chance(random, 0.7) ? 'LIVE' : 'SUSPENDED' }
  const what = pickWeighted(random, [
    ['retitled', 8],
    ['moved', 4],
    ['left', 6],
    ['funded', 2],
    ['deleted', 1],
  ] as const)
  switch (what) {
    case 'retitled':
      return { ...state, title }
    case 'moved':
      return { ...state, title, launchDay: intBetween(random, 0, 300) }
    case 'left':
      return { ...state, title, status: 'SUSPENDED' }
    case 'funded':
      return { ...state, title, status: 'FUNDED' }
    case 'deleted':
      return null
    default:
      return what satisfies never
  }
}

// One leader after the other. An earlier one may believe for a while that it still leads, may be dead, or may have paused.
function drawFoldWorkers(random: Random, counts: readonly number[]): FoldWorkerPlan[] {
  const count = pick(random, counts)
  const handovers = Array.from({ length: count - 1 }, () =>
    intBetween(random, changesFromMs, changesSpanMs),
  ).toSorted((a, b) => a - b)
  return Array.from({ length: count }, (_, n) => {
    const leadsFrom = handovers[n - 1] ?? 0
    const successorAt = handovers[n]
    const plan = { leadsFrom, leadsUntil: never, diesAt: never, pausesAt: never, pausesUntil: never }
    if (successorAt === undefined) return plan
    const pausesAt = intBetween(random, leadsFrom, successorAt)
    const wakesAt = successorAt + intBetween(random, 1, pick(random, [15_000, 60_000]))
    return pick(random, [
      { ...plan, leadsUntil: successorAt },
      { ...plan, diesAt: successorAt },
      { ...plan, leadsUntil: successorAt + intBetween(random, 0, 10_000) },
      { ...plan, leadsUntil: successorAt, pausesAt, pausesUntil: wakesAt },
      { ...plan, leadsUntil: wakesAt + intBetween(random, 1_000, 10_000), pausesAt, pausesUntil: wakesAt },
    ])
  })
}

function drawPollerKinds(random: Random, climate: Climate): ('client' | 'loop')[] {
  // Each walks everything once. A late walk finds a snapshot that is about to expire.
  if (climate === 'slow') return ['loop', 'loop', 'loop', 'loop', 'client']
  return ['loop', 'client', pick(random, ['loop', 'client'])]
}

function drawPoller(random: Random, kind: 'client' | 'loop', climate: Climate) {
  const isLate = climate === 'late'
  const isSlow = climate === 'slow'
  const fromMs = isSlow ? walksFromMs : changesFromMs
  return {
    kind,
    startsAt: intBetween(random, fromMs, fromMs + (isSlow ? 18_000 : 10_000)),
    intervalMs: isLate ? 1_000 : pick(random, [1_500, 4_000, 10_000]),
    pageSize: isSlow ? 1 : isLate ? 5 : pick(random, [1, 2, 3]),
    /** Whether it walks everything now and then to find what is gone. */
    reconciles: chance(random, 0.25),
    /** When it is stopped at any point, and started again from what it has stored. */
    restartsAt: chance(random, 0.2) ? intBetween(random, changesFromMs, changesSpanMs) : undefined,
  }
}
