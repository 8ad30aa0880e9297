/**
 * One world of the simulation, played from its start until the dust has settled: what was lost in it.
 *
 * Everything is real but for ClickHouse (a model, or the engine in-process), the network and the time.
 */
import { createHash } from 'node:crypto'
import { chance, intBetween, randomOf } from '../../../services/demo/random.ts'
import { pendingBatchesStatement, progressStatement } from '../../../services/projector/fold-statements.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { createClickHouse } from './clickhouse.ts'
import type { Engine } from './engine.ts'
import { createFates } from './fates.ts'
import { createModelEngine } from './model-engine.ts'
import { createClientPoller, createLoopPoller } from './pollers.ts'
import { ingestAll, startFolders } from './projectors.ts'
import { headersOf, startQueryProcesses } from './query-processes.ts'
import { drawScenario, queryProcesses, type Scenario } from './scenario.ts'
import { createKindOf } from './statement-kinds.ts'
import { type Loss, lossesOf, publicCampaigns } from './verdict.ts'
import { createVirtualTime, type VirtualTime } from './virtual-time.ts'

/** What protects a poller from losses; the tests switch them off one by one. */
export interface Safeguards {
  /** Watermarks stay behind ClickHouse's clock. */
  horizon: boolean
  /** `updated_since` finds what changed in that very millisecond. */
  inclusiveBound: boolean
  /** The pages of a list come from one snapshot. */
  snapshots: boolean
  /** What became visible too late, or unseen, is stamped anew. */
  restamping: boolean
  /** The documented loop repeats a walk whose pages come from several snapshots. */
  wholeWalks: boolean
}

export const allSafeguards: Safeguards = {
  horizon: true,
  inclusiveBound: true,
  snapshots: true,
  restamping: true,
  wholeWalks: true,
}

export interface WorldOptions {
  safeguards?: Safeguards
  /** Whether the query processes answer lists from their indexes in memory. */
  usesIndex: boolean
  /** Replaces the model of ClickHouse. */
  engine?: { engine: Engine; databases: Databases }
}

export interface Outcome {
  seed: number
  changes: number
  /** First pages that were asked for. */
  polls: number
  requests: number
  /** Statements whose rows became visible later than the horizon allows. */
  lateLandings: number
  /** Virtual milliseconds. */
  lastedMs: number
  /** Found before anything was reconciled, among the public campaigns; afterwards, among all. */
  losses: Loss[]
  /** Of all that was answered, to tell two runs apart. */
  digest: string
}

const modelDatabases: Databases = { model: 'model', views: 'views' }
const worldMsMax = 60 * 60 * 1_000
const worldStartsAt = Date.parse('2026-03-01T12:00:00.000Z')

export async function playWorld(seed: number, options: WorldOptions): Promise<Outcome> {
  const scenario = drawScenario(seed)
  const { safeguards = allSafeguards, usesIndex } = options
  const startsAt = worldStartsAt
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
    })
  const isStormy = () => time.now() - startsAt < scenario.changesEndAt
  const fates = createFates({
    random: randomOf('fates', seed),
    horizonMs: scenario.horizonMs,
    wayMsMax: scenario.wayMsMax,
    writeMsMin: Math.max(5, scenario.tickMs),
    lateMsMax: scenario.lateMsMax,
    trouble: () => (isStormy() ? scenario.trouble : 0),
    edges: () => (isStormy() ? scenario.edges : 0),
  })
  const clickHouse = createClickHouse({ engine, kindOf, time, fates, horizonMs: scenario.horizonMs })
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
    digest.update(`${time.now()} ${path} ${response.status} ${response.headers.get('x-data-as-of')}\n`)
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
        // Processes that share no caches have snapshots of their own: a balancer that sent a consumer to any of them would
        // let it see a whole list by chance only. So it keeps to one, and changes to another now and then.
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
    const folding = Promise.all(startFolders(projectors, stop.signal))
    // Rejects when a folder fails; else it says nothing.
    const failing = folding.then(() => new Promise<never>(() => {}))
    const following = Promise.all(pollers.map(poller => poller.follow()))
    const whole = async () => {
      await Promise.all([ingestAll(projectors), time.sleep(scenario.changesEndAt)])
      await quiet(engine, { time, databases, isBusy: () => clickHouse.running() > 0, scenario, startsAt })
      quietAt = time.now()
      await following
      const expected = publicCampaigns(scenario)
      const missed = pollers.flatMap((poller, n) => lossesOf(poller, `${n}`, expected, 'of the public'))
      // What has left the public is in cached answers until they end.
      await time.sleep(scenario.listCacheMs)
      await Promise.all(pollers.map(poller => poller.reconcile()))
      return [
        ...missed,
        ...pollers.flatMap((poller, n) => lossesOf(poller, `${n} reconciled`, expected, 'of all')),
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
    lastedMs: time.now() - startsAt,
    losses: found,
    digest: digest.digest('hex'),
  }
}

/** Resolves when every batch is folded and recorded, and every process that slept has woken up. */
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
  const wakings = scenario.folders.map(({ pausesUntil }) => pausesUntil).filter(Number.isFinite)
  await time.sleep(startsAt + Math.max(0, ...wakings) - time.now())
  for (let calm = 0; calm < 2; ) {
    await time.sleep(scenario.horizonMs)
    const rows = (await time.outside(engine.read(progressStatement(databases), 0))) as {
      projector: string
      sequence: number
    }[]
    const progress = Object.fromEntries(rows.map(({ projector, sequence }) => [projector, sequence]))
    const pending = await time.outside(engine.read(pendingBatchesStatement(databases, progress), 0))
    calm = pending.length === 0 && !isBusy() ? calm + 1 : 0
  }
}
