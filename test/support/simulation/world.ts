/**
 * Plays one world of the simulation from its start until nothing changes any more, and finds what was lost.
 *
 * Everything is real except ClickHouse (a model, or the real one), the network and the time.
 */

import { createHash } from 'node:crypto'
import {
  type PendingBatches,
  pendingBatchesStatement,
} from '../../../services/projector/fold/fold-progress.ts'
import { type QuarantinedCampaign, quarantineStatement } from '../../../services/projector/fold/quarantine.ts'
import { clockStatement } from '../../../services/projector/fold/watermark.ts'
import { generationOf } from '../../../services/tables/generations.ts'
import type { Databases, Statement } from '../../../services/tables/port.ts'
import { chance, intBetween, randomOf } from '../runner/random.ts'
import { type ClickHouse, type Counts, createClickHouse } from './engine/clickhouse.ts'
import type { Engine } from './engine/engine.ts'
import { createModelEngine } from './engine/model-engine.ts'
import { createKindOf } from './engine/statement-kinds.ts'
import { createFates } from './fates.ts'
import { aloneMsMax, isNeverFolded } from './heavy-campaign.ts'
import { createClientPoller, createLoopPoller } from './pollers.ts'
import { ingestAll, startFoldWorkers } from './projectors.ts'
import { headersOf, startQueryProcesses } from './query-processes.ts'
import { allSafeguards, type Safeguards } from './safeguards.ts'
import { drawScenario, foldMsMax, queryProcesses, type Scenario } from './scenario.ts'
import { type Loss, lossesOf, publicCampaigns } from './verdict.ts'
import { createVirtualTime, type VirtualTime } from './virtual-time.ts'

export interface SimulatedAnswer {
  /** The poller that got it. */
  reader: string
  process: number
  path: string
  sentAt: number
  receivedAt: number
  response: Response
  body: string
}

export interface WorldOptions {
  safeguards?: Safeguards
  /** Whether the query processes answer lists from their indexes in memory. */
  usesIndex: boolean
  /** Called with each answer that a poller gets, at the virtual time. */
  onAnswer?: (answer: SimulatedAnswer) => void
  /** Replaces the model of ClickHouse. */
  engine?: { engine: Engine; databases: Databases }
}

export interface Outcome {
  seed: number
  changes: number
  /** First pages that were requested. */
  polls: number
  requests: number
  counts: Counts
  /** How long it took after the changes and the faults until everything was folded, ms. */
  calmedMs: number
  /** How far the watermark was behind ClickHouse's clock at most, from then on, ms. */
  behindMs: number
  /** Virtual milliseconds. */
  lastedMs: number
  /** Found before copies were checked, by the check itself, and after it. */
  losses: Loss[]
  /** A digest of all answers, to compare two runs. */
  digest: string
}

const modelDatabases: Databases = generationOf({ base: 'model', views: 'views' }, 1)
const worldMsMax = 60 * 60 * 1_000
const repaired = { expected: undefined, held: 'another state than the service shows' }

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
  const engine = options.engine?.engine ?? createModelEngine(kindOf, safeguards)
  const isStormy = () => time.now() - startsAt < scenario.changesEndAt
  const fates = createFates({
    random: randomOf('fates', seed),
    wayMsMax: scenario.wayMsMax,
    writeMsMin: Math.max(5, scenario.tickMs),
    foldMsMax,
    areLate: scenario.climate === 'late',
    trouble: () => (isStormy() ? scenario.trouble : 0),
  })
  const { heavy } = scenario
  const elapsedMs = () => time.now() - startsAt
  const clickHouse = createClickHouse({ engine, kindOf, time, fates, foldMsMax, heavy, elapsedMs })
  const projectors = { clickHouse, databases, time, startsAt, scenario, safeguards }
  const query = startQueryProcesses({
    tables: () => clickHouse.connectReader(),
    databases,
    time,
    scenario,
    settings: { usesIndex, hasSnapshots: safeguards.snapshots },
  })
  const digest = createHash('sha256')
  const random = randomOf('network', seed)
  let requests = 0
  let polls = 0
  let quietAt = Number.POSITIVE_INFINITY
  let calmedMs = 0
  let behindMs = 0

  async function get(
    reader: string,
    process: number,
    path: string,
    headers: Record<string, string>,
    signal?: AbortSignal,
  ) {
    requests++
    const sentAt = time.now()
    if (!/offset=[1-9]/.test(path)) polls++
    await time.sleep(fates.wayMs(), signal)
    if (fates.isRequestLost()) throw new TypeError('the connection was lost')
    const response = await query[process]?.get(path, headers)
    if (response === undefined) throw new Error(`no query process ${process}`)
    signal?.throwIfAborted()
    await time.sleep(fates.wayMs(), signal)
    const names = ['x-data-as-of', 'x-snapshot-id', 'x-data-digest']
    const seen = names.map(name => response.headers.get(name)).join(' ')
    const receivedAt = time.now()
    if (options.onAnswer) {
      const body = await response.clone().text()
      options.onAnswer({ reader, process, path, sentAt, receivedAt, response, body })
    }
    digest.update(`${receivedAt} ${path} ${response.status} ${seen}\n`)
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
        return get(`poller ${number}`, process, path, headers, signal)
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
      const stormUntil = time.now()
      const watching = { engine, clickHouse, time, databases, scenario, startsAt }
      await quiet(watching)
      calmedMs = time.now() - stormUntil
      // A list with a later watermark was read from now on.
      quietAt = (await readClock(watching)).watermark + 1
      behindMs = await watchWatermark(watching)
      await following
      const expected = publicCampaigns(scenario)
      const exempt = isNeverFolded(heavy) ? heavy?.id : undefined
      const missed = pollers.flatMap((poller, n) => lossesOf(poller, `${n}`, expected, exempt))
      // Cached answers contain what is no longer public until they expire.
      await time.sleep(scenario.listCacheMs)
      const wrong = await Promise.all(pollers.map(poller => poller.check()))
      return [
        ...missed,
        ...wrong.flatMap((ids, n) => ids.map(id => ({ poller: `${n} verified`, id, ...repaired }))),
        ...pollers.flatMap((poller, n) => lossesOf(poller, `${n} checked`, expected, exempt)),
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
    counts: clickHouse.counts(),
    calmedMs,
    behindMs,
    lastedMs: time.now() - startsAt,
    losses: found,
    digest: digest.digest('hex'),
  }
}

interface Watching {
  engine: Engine
  clickHouse: ClickHouse
  time: VirtualTime
  databases: Databases
  scenario: Scenario
  startsAt: number
}

async function readNow<Row>({ engine, clickHouse, time }: Watching, statement: Statement): Promise<Row[]> {
  return (await time.outside(engine.read(statement, clickHouse.clock()))) as Row[]
}

async function readClock(watching: Watching): Promise<{ now: number; watermark: number }> {
  const [row] = await readNow<{ now: number; watermark: number }>(
    watching,
    clockStatement(watching.databases),
  )
  if (row === undefined) throw new Error('no clock')
  return row
}

/**
 * Resolves when every batch is folded and recorded, every public campaign in quarantine was tried since then, every paused process has
 * continued, and nothing runs any more or is on its way.
 */
async function quiet(watching: Watching): Promise<void> {
  const { clickHouse, time, databases, scenario, startsAt } = watching
  const { heavy } = scenario
  const shown = publicCampaigns(scenario)
  const quarantined = () => readNow<QuarantinedCampaign>(watching, quarantineStatement(databases))
  const isFoldable = ({ campaign }: QuarantinedCampaign) =>
    shown.has(campaign) && !(campaign === heavy?.id && isNeverFolded(heavy))
  const wakings = scenario.foldWorkers.map(({ pausesUntil }) => pausesUntil).filter(Number.isFinite)
  await time.sleep(startsAt + Math.max(0, ...wakings) - time.now())
  let tried: QuarantinedCampaign[] = []
  for (let calm = 0; calm < 2; ) {
    await time.sleep(5_000)
    const [pending] = await readNow<PendingBatches>(watching, pendingBatchesStatement(databases, []))
    tried = (await quarantined()).filter(isFoldable)
    const isBehind = tried.some(({ failures }) => failures > 0)
    calm = pending?.batches === 0 && !isBehind && clickHouse.busy() === 0 ? calm + 1 : 0
  }
  // They are tried in a tenth of the time.
  if (tried.length > 0) await time.sleep(11 * aloneMsMax)
}

/** How far the watermark is behind the clock at most, in a while. */
async function watchWatermark(watching: Watching): Promise<number> {
  let behindMs = 0
  for (let looks = 0; looks < 15; looks++) {
    const { now, watermark } = await readClock(watching)
    behindMs = Math.max(behindMs, now - watermark)
    await watching.time.sleep(1_000)
  }
  return behindMs
}
