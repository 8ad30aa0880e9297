/**
 * Plays one world of the simulation from its start until nothing changes any more, and finds what was lost.
 *
 * Everything is real except ClickHouse (a model, or the real one), the network and the time.
 */
import { createHash } from 'node:crypto'
import { chance, intBetween, randomOf } from '../../../services/demo/random.ts'
import { pendingBatchesStatement } from '../../../services/projector/fold/batch-log-statements.ts'
import { progressStatement } from '../../../services/projector/fold/fold-statements.ts'
import {
  type SetAsideRecord,
  setAsideStatement,
} from '../../../services/projector/fold/set-aside-statements.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { createClickHouse } from './clickhouse.ts'
import type { Engine } from './engine.ts'
import { createFates } from './fates.ts'
import { lostCampaign } from './heavy-campaign.ts'
import { createModelEngine } from './model-engine.ts'
import { createClientPoller, createLoopPoller } from './pollers.ts'
import { ingestAll, startFoldWorkers } from './projectors.ts'
import { headersOf, startQueryProcesses } from './query-processes.ts'
import { drawReplicas } from './replicas.ts'
import { drawScenario, queryProcesses, type Scenario } from './scenario.ts'
import { createKindOf } from './statement-kinds.ts'
import { type Loss, lossesOf, publicCampaigns } from './verdict.ts'
import { createVirtualTime, type VirtualTime } from './virtual-time.ts'

/** What protects a poller from losses. The tests switch these off one by one. */
export interface Safeguards {
  /** Watermarks stay behind ClickHouse's clock. */
  horizon: boolean
  /** `updated_since` finds what changed in that very millisecond. */
  inclusiveBound: boolean
  /** The pages of a list come from one snapshot. */
  snapshots: boolean
  /** Rows that became visible too late, or that were not seen to, get a new stamp. */
  restamping: boolean
  /** Stamps and watermarks keep to the stamp floor, whatever ClickHouse's clock does. */
  floor: boolean
  /** A campaign that is folded alone is staged, and shown by a short statement. */
  staging: boolean
  /** The documented loop repeats a walk whose pages come from several snapshots. */
  wholeWalks: boolean
  /** On replicas, a table refuses inserts until a majority has the one before. */
  refusal: boolean
}

export const allSafeguards: Safeguards = {
  horizon: true,
  inclusiveBound: true,
  snapshots: true,
  restamping: true,
  floor: true,
  staging: true,
  wholeWalks: true,
  refusal: true,
}

export interface WorldOptions {
  safeguards?: Safeguards
  /** Whether the query processes answer lists from their indexes in memory. */
  usesIndex: boolean
  /** Whether the tables are on several replicas. Only the model of ClickHouse can do that. */
  hasReplicas?: boolean
  /** Replaces the model of ClickHouse. */
  engine?: { engine: Engine; databases: Databases }
}

export interface Outcome {
  seed: number
  changes: number
  /** First pages that were requested. */
  polls: number
  requests: number
  /** Statements whose rows became visible later than the horizon allows. */
  lateLandings: number
  /** Folds of campaigns that were set aside. */
  foldsAlone: number
  /** Virtual milliseconds. */
  lastedMs: number
  /** Found before copies were reconciled, among the public campaigns; afterwards, among all. */
  losses: Loss[]
  /** A digest of all answers, to compare two runs. */
  digest: string
}

const modelDatabases: Databases = { model: 'model', views: 'views' }
const worldMsMax = 60 * 60 * 1_000

export async function playWorld(seed: number, options: WorldOptions): Promise<Outcome> {
  const scenario = drawScenario(seed)
  const { safeguards = allSafeguards, usesIndex } = options
  const { startsAt } = scenario
  const time = createVirtualTime({
    startsAt,
    tickMs: scenario.tickMs,
    order: scenario.wakingOrder,
    random: randomOf('time', seed),
  })
  const databases = options.engine?.databases ?? modelDatabases
  const kindOf = createKindOf(databases)
  const engine =
    options.engine?.engine ??
    createModelEngine({
      kindOf,
      isBoundInclusive: safeguards.inclusiveBound,
      isRestamping: safeguards.restamping,
      hasFloor: safeguards.floor,
    })
  const isStormy = () => time.now() - startsAt < scenario.changesEndAt
  const fates = createFates({
    random: randomOf('fates', seed),
    wayMsMax: scenario.wayMsMax,
    writeMsMin: Math.max(5, scenario.tickMs),
    lateHorizonsMax: scenario.lateHorizonsMax,
    trouble: () => (isStormy() ? scenario.trouble : 0),
    edges: () => (isStormy() ? scenario.edges : 0),
  })
  const { heavy } = scenario
  const elapsedMs = () => time.now() - startsAt
  const isStaging = safeguards.staging
  const ofReplicas = randomOf('replicas', seed)
  const replicas = options.hasReplicas
    ? { settings: drawReplicas(ofReplicas, safeguards.refusal), random: ofReplicas, isStormy }
    : undefined
  const clickHouse = createClickHouse({
    engine,
    kindOf,
    time,
    fates,
    heavy,
    elapsedMs,
    isStaging,
    replicas,
  })
  const projectors = { clickHouse, databases, time, startsAt, scenario }
  const query = startQueryProcesses({
    tables: () => clickHouse.connectReader(),
    databases,
    time,
    scenario,
    settings: { usesIndex, hasHorizon: safeguards.horizon, hasSnapshots: safeguards.snapshots },
  })
  const digest = createHash('sha256')
  const random = randomOf('network', seed)
  let requests = 0
  let polls = 0
  let quietAt = Number.POSITIVE_INFINITY

  async function get(process: number, path: string, headers: Record<string, string>, signal?: AbortSignal) {
    requests++
    if (!/offset=[1-9]/.test(path)) polls++
    await time.sleep(fates.wayMs(), signal)
    if (fates.isRequestLost()) throw new TypeError('the connection was lost')
    const response = await query[process]?.get(path, headers)
    if (response === undefined) throw new Error(`no query process ${process}`)
    signal?.throwIfAborted()
    await time.sleep(fates.wayMs(), signal)
    const [asOf, snapshotId] = ['x-data-as-of', 'x-snapshot-id'].map(name => response.headers.get(name))
    digest.update(`${time.now()} ${path} ${response.status} ${asOf} ${snapshotId}\n`)
    return response
  }

  const pollers = scenario.pollers.map((plan, number) => {
    const dependencies = {
      plan,
      time,
      startsAt,
      random: randomOf('poller', seed, number),
      headers: headersOf(number),
      quietAt: () => quietAt,
      onCrossing: safeguards.wholeWalks ? ('repeat it' as const) : ('take it' as const),
      get: (path: string, headers: Record<string, string>, signal?: AbortSignal) => {
        // Processes that do not share caches have their own snapshots. If a load balancer sent a consumer to any of them, it would
        // seldom see a whole list. So a consumer stays with one, and changes to another now and then.
        const roams = scenario.sharesCaches || (isStormy() && chance(random, 0.05))
        const process = roams ? intBetween(random, 0, queryProcesses - 1) : number % queryProcesses
        return get(process, path, headers, signal)
      },
    }
    return plan.kind === 'loop' ? createLoopPoller(dependencies) : createClientPoller(dependencies)
  })

  async function play(): Promise<Loss[]> {
    const stop = new AbortController()
    for (const { at, process } of scenario.cacheLosses) {
      time.sleep(at).then(() => query[process]?.loseCaches())
    }
    for (const { at, byMs } of scenario.clockSteps) time.sleep(at).then(() => clickHouse.stepClock(byMs))
    const folding = Promise.all(startFoldWorkers(projectors, stop.signal))
    // Rejects when a fold worker fails. Otherwise it does nothing.
    const failing = folding.then(() => new Promise<never>(() => {}))
    const following = Promise.all(pollers.map(poller => poller.follow()))
    const whole = async () => {
      await Promise.all([ingestAll(projectors), time.sleep(scenario.changesEndAt)])
      await quiet(engine, { time, databases, isBusy: () => clickHouse.running() > 0, scenario, startsAt })
      // By ClickHouse's clock, as watermarks are.
      clickHouse.clock()
      quietAt = clickHouse.clockMax()
      await following
      const expected = publicCampaigns(scenario)
      const exempt = lostCampaign(scenario.heavy)
      const missed = pollers.flatMap((poller, n) =>
        lossesOf(poller, `${n}`, expected, { among: 'of the public', exempt }),
      )
      // Cached answers contain what is no longer public until they expire.
      await time.sleep(scenario.listCacheMs)
      await Promise.all(pollers.map(poller => poller.reconcile()))
      return [
        ...missed,
        ...pollers.flatMap((poller, n) =>
          lossesOf(poller, `${n} reconciled`, expected, { among: 'of all', exempt }),
        ),
      ]
    }
    try {
      return await Promise.race([whole(), failing, following.then(() => new Promise<never>(() => {}))])
    } finally {
      stop.abort()
    }
  }

  const found = await time.play(play(), worldMsMax)
  return {
    seed,
    changes: scenario.batches.reduce((sum, { changes }) => sum + changes.length, 0),
    polls,
    requests,
    lateLandings: clickHouse.lateLandings(),
    foldsAlone: clickHouse.foldsAlone(),
    lastedMs: time.now() - startsAt,
    losses: found,
    digest: digest.digest('hex'),
  }
}

/**
 * Resolves when every batch is folded and recorded, also of campaigns that are set aside, and every paused process has
 * continued.
 */
async function quiet(
  engine: Engine,
  {
    time,
    databases,
    isBusy,
    scenario,
    startsAt,
  }: { time: VirtualTime; databases: Databases; isBusy: () => boolean; scenario: Scenario; startsAt: number },
): Promise<void> {
  const wakings = scenario.foldWorkers.map(({ pausesUntil }) => pausesUntil).filter(Number.isFinite)
  await time.sleep(startsAt + Math.max(0, ...wakings) - time.now())
  for (let calm = 0; calm < 2; ) {
    await time.sleep(scenario.horizonMs)
    const rows = (await time.outside(engine.read(progressStatement(databases), 0))) as {
      projector: string
      sequence: number
    }[]
    const progress = Object.fromEntries(rows.map(({ projector, sequence }) => [projector, sequence]))
    const pending = await time.outside(engine.read(pendingBatchesStatement(databases, progress), 0))
    const setAside = (await time.outside(engine.read(setAsideStatement(databases), 0))) as SetAsideRecord[]
    const isBehind = setAside.some(one => one.isBehind && one.campaign !== lostCampaign(scenario.heavy))
    calm = pending.length === 0 && !isBehind && !isBusy() ? calm + 1 : 0
  }
}
