/**
 * Plays one world of the simulation from its start until nothing changes any more. What was lost: test/prove/simulated.ts.
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
import { generationOf } from '../../../services/tables/generation-log.ts'
import type { Databases, Statement } from '../../../services/tables/port.ts'
import { readModelOf } from '../events/model.ts'
import { chance, intBetween, randomOf } from '../runner/random.ts'
import { type ClickHouse, createClickHouse } from './engine/clickhouse.ts'
import type { Engine } from './engine/engine.ts'
import { createModelEngine } from './engine/model-engine.ts'
import { createKindOf } from './engine/statement-kinds.ts'
import { createFates } from './fates.ts'
import { aloneMsMax, isNeverFolded } from './heavy-campaign.ts'
import { createClientPoller, createLoopPoller } from './pollers.ts'
import { eventsOf, ingestAll, startFoldWorker } from './projectors.ts'
import { headersOf, startQueryProcesses } from './query-processes.ts'
import { allSafeguards, type Safeguards } from './safeguards.ts'
import { drawScenario, queryProcesses, type Scenario } from './scenario.ts'
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

export type Outcome = Awaited<ReturnType<typeof playWorld>>

const modelDatabases: Databases = generationOf({ base: 'model', views: 'views' }, 1)
const worldMsMax = 60 * 60 * 1_000

export async function playWorld(seed: number, options: WorldOptions) {
  const scenario = drawScenario(seed)
  const { safeguards = allSafeguards, usesIndex } = options
  const { startsAt } = scenario
  const time = createVirtualTime(scenario, randomOf('time', seed))
  const databases = options.engine?.databases ?? modelDatabases
  const kindOf = createKindOf(databases)
  const engine = options.engine?.engine ?? createModelEngine(kindOf, safeguards)
  const isStormy = () => time.now() - startsAt < scenario.changesEndAt
  const fates = createFates(scenario, randomOf('fates', seed), isStormy)
  const { heavy } = scenario
  const elapsedMs = () => time.now() - startsAt
  const clickHouse = createClickHouse({ engine, kindOf, time, fates, heavy, elapsedMs })
  const projectors = { clickHouse, databases, time, startsAt, scenario, safeguards }
  const query = startQueryProcesses({
    tables: () => clickHouse.connectReader(),
    databases,
    time,
    scenario,
    usesIndex,
    safeguards,
  })
  const digest = createHash('sha256')
  const random = randomOf('network', seed)
  let quietAt = Number.POSITIVE_INFINITY
  let behindMs = 0

  const pollers = scenario.pollers.map((plan, number) => {
    async function get(path: string, headers: Record<string, string>, signal?: AbortSignal) {
      // Processes that do not share caches have their own snapshots. If a load balancer sent a consumer to any of them, it would
      // seldom see a whole list. So a consumer stays with one, and changes to another now and then.
      const roams = scenario.sharesCaches || (isStormy() && chance(random, 0.05))
      const process = roams ? intBetween(random, 0, queryProcesses - 1) : number % queryProcesses
      const sentAt = time.now()
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
        options.onAnswer({ reader: `poller ${number}`, process, path, sentAt, receivedAt, response, body })
      }
      digest.update(`${receivedAt} ${path} ${response.status} ${seen}\n`)
      return response
    }
    const create = plan.kind === 'loop' ? createLoopPoller : createClientPoller
    return create({
      plan,
      time,
      startsAt,
      random: randomOf('poller', seed, number),
      headers: headersOf(number),
      quietAt: () => quietAt,
      onCrossing: safeguards.wholeWalks ? 'repeat it' : 'take it',
      get,
    })
  })

  const copiesNow = (when: string) =>
    pollers.map((poller, n) => ({ mirror: `poller ${n}${when}`, rows: [...poller.copy().values()] }))

  async function play() {
    const stop = new AbortController()
    for (const { at, process } of scenario.cacheLosses) {
      time.sleep(at).then(() => query[process]?.loseCaches())
    }
    for (const { at, byMs } of scenario.clockSteps) time.sleep(at).then(() => clickHouse.stepClock(byMs))
    const workers = scenario.foldWorkers.map((plan, number) => ({ plan, number, signal: stop.signal }))
    const folding = Promise.all(workers.map(worker => startFoldWorker(projectors, worker)))
    // Rejects when a fold worker fails. Otherwise it does nothing.
    const failing = folding.then(() => new Promise<never>(() => {}))
    const following = Promise.all(pollers.map(poller => poller.follow()))
    const whole = async () => {
      await Promise.all([ingestAll(projectors), time.sleep(scenario.changesEndAt)])
      const watching = { engine, clickHouse, time, databases, scenario, startsAt }
      await quiet(watching)
      // A list with a later watermark was read from now on.
      quietAt = (await readClock(watching)).watermark + 1
      behindMs = await watchWatermark(watching)
      await following
      const copies = copiesNow('')
      // Cached answers contain what is no longer public until they expire.
      await time.sleep(scenario.listCacheMs)
      const wrong = await Promise.all(pollers.map(poller => poller.check()))
      return {
        /** The copies before they were checked, and after it. */
        copies: [...copies, ...copiesNow(', checked')],
        /** What the check itself found, by the ids of campaigns. */
        wrong: wrong.flat(),
      }
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
    counts: clickHouse.counts(),
    /** How far the watermark was behind ClickHouse's clock at most, after all was folded, ms. */
    behindMs,
    /** Virtual milliseconds. */
    lastedMs: time.now() - startsAt,
    ...found,
    /** A digest of all answers, to compare two runs. */
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
  const shown = readModelOf(eventsOf(scenario)).campaigns
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
