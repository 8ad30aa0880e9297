/** The promotion of a generation: killed between any two of its statements, late, and beside readers and leaders that lag behind. */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { AttemptLost } from '../../../services/generations/attempts.ts'
import { dropOthers } from '../../../services/generations/rebuilds.ts'
import { FoldPaused } from '../../../services/projector/fold/fold-epochs.ts'
import { startQueryService } from '../../../services/query/service.ts'
import { memoryState } from '../../../services/query/shared-state.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { presentOf } from '../../../services/tables/generations.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { type Place, poll } from '../../simulation/documented-loop.ts'
import { obstructed, type TablesCall } from '../../support/clickhouse/faulty-tables.ts'
import { startShards } from '../../support/clickhouse/shards.ts'
import { readModelOf } from '../../support/events/model.ts'
import { apiKeyEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { damage, spoiltTitle } from '../../support/generations/damage.ts'
import {
  isPromotion,
  openRebuildableModel,
  phaseIn,
  platformHistory,
  type RebuildableModel,
} from '../../support/generations/rebuilds.ts'
import { openRebuildableShards } from '../../support/generations/shard-rebuilds.ts'
import { column } from '../../support/projector/fold-records.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  readViews,
} from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { pepper } from '../../support/query/app.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000, hookTimeout: 120_000 })

const key = 'pv_live_0123456789abcdefghijklmnop'
const secret = 'a secret of the tests'
// Whoever waits for a promotion gives it up after three seconds, and not after a minute.
const hurry = 20
const busy = ['c1', 'c2', 'c3']
// kills.test.ts has the places between these, on one server.
const statementsBetweenKills = 14

const model = useModelTables()
let live: RebuildableModel
let events: ChangeEvent[]
let closers: (() => unknown)[]

beforeEach(() => {
  closers = []
  events = [
    ...platformHistory(20),
    apiKeyEvent({ key, account_id: 'reader', secret_hash: hashSecret(pepper, secret) }),
  ]
})
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
})

async function onOneServer(): Promise<void> {
  live = await openRebuildableModel(model, { hurry })
}

async function onTwoShards(): Promise<void> {
  const servers = await startShards(2)
  closers.push(() => servers.stop())
  live = await openRebuildableShards(servers, { hurry })
}

async function open(onServers: () => Promise<void>): Promise<void> {
  await onServers()
  closers.push(() => live.close())
  await live.append(events)
  await live.settled()
}

async function append(more: readonly ChangeEvent[]): Promise<void> {
  events.push(...more)
  await live.append(more)
}

async function expectTruth(): Promise<void> {
  await live.settled()
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
}

/** Of the current generation: the traffic makes it grow. */
async function shownPledges(): Promise<number> {
  const query = `SELECT sum(pledge_count) AS value FROM ${live.databases.read}.campaigns FINAL`
  return Number((await column(live.tables, query))[0])
}

function startTraffic(): () => Promise<void> {
  let isOver = false
  const running = (async () => {
    for (let n = 0; !isOver; n++) {
      await append([pledgeEvent({ campaign_id: String(busy[n % 3]), pledge_id: `more${n}` })])
      await delay(100)
    }
  })()
  running.catch(() => undefined)
  const stop = async () => {
    isOver = true
    await running
  }
  closers.push(stop)
  return stop
}

/** A mirror that polls the API all the time, as the guide says. `again`: what it was sent once more. */
async function startMirror() {
  await holdTablesIdentity(live.tables, live.databases, { PLEDGEVIEW_KEY_PEPPER: pepper })
  const config = readConfig({ PLEDGEVIEW_CACHE_MS: '1000', PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '100000' })
  const query = await startQueryService({
    tables: live.tables,
    databases: live.databases,
    config,
    keyPepper: pepper,
    state: memoryState(config),
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
  })
  closers.push(() => query.close())
  const apiUrl = `${await query.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`
  const get = (path: string) =>
    fetch(`${apiUrl}${path}`, { headers: { 'x-api-key': key, 'x-api-secret': secret } })
  const again = new Set<string>()
  const copy: Place['copy'] = new Map()
  const mirror: Place = { copy, since: null }
  const walk = (place: Place, pageSize: number) => poll(place, { pageSize, get, wait: delay })
  await walk(mirror, 100)
  const store = copy.set.bind(copy)
  copy.set = (id, project) => {
    again.add(id)
    return store(id, project)
  }
  // The watermark has to pass the first fold: until then a poll brings its rows once more.
  await vi.waitFor(
    async () => {
      again.clear()
      await walk(mirror, 100)
      expect(again.size).toBe(0)
    },
    { timeout: 60_000, interval: 500 },
  )
  let isOver = false
  const running = (async () => {
    for (; !isOver; await delay(100)) await walk(mirror, 7)
  })()
  running.catch(() => undefined)
  const stop = async () => {
    isOver = true
    await running
  }
  closers.push(stop)
  return {
    again,
    stop,
    /** Resolves once the mirror has what a new walk over everything has. */
    async agrees() {
      await vi.waitFor(
        async () => {
          await walk(mirror, 7)
          const whole: Place = { copy: new Map(), since: null }
          await walk(whole, 100)
          expect(Object.fromEntries(copy)).toEqual(Object.fromEntries(whole.copy))
        },
        { timeout: 60_000, interval: 300 },
      )
      expect(copy.size).toBe(readModelOf(events).campaigns.size)
    },
  }
}

/** Tables of a process that dies at a statement of its promotion, and never runs another. */
function mortals(statement: number) {
  let isPromoting = false
  let count = 0
  let isDead = false
  const dying = (tables: Tables): Tables => {
    const own = obstructed(tables, {
      before() {
        if (isPromoting) count++
        isDead ||= count >= statement
        if (isDead) throw new Error('killed')
      },
    })
    return {
      ...own,
      async insert(insert) {
        await own.insert(insert)
        isPromoting ||= phaseIn(insert) === 'promoting'
      },
    }
  }
  return { dying, hasDied: () => isDead }
}

describe('on two shards', () => {
  test('killed between its statements, a promotion is whole or has not happened; a mirror misses nothing, and fetches nothing again', async () => {
    await open(onTwoShards)
    const mirror = await startMirror()
    const stopTraffic = startTraffic()
    let deaths = 0
    for (let statement = 1; ; statement += statementsBetweenKills) {
      const { dying, hasDied } = mortals(statement)
      const outcome = await live
        .rebuild({ tables: dying(live.tables), tablesOfShard: shard => dying(shard.tables) })
        .catch((error: unknown) => error)
      if (!hasDied()) {
        if (outcome instanceof Error) throw outcome
        break
      }
      deaths++
      // Nobody stops the fold for ever.
      const before = await shownPledges()
      await vi.waitFor(async () => expect(await shownPledges()).toBeGreaterThan(before), {
        timeout: 60_000,
        interval: 100,
      })
    }
    expect(deaths).toBeGreaterThan(3)
    await stopTraffic()
    await expectTruth()
    await mirror.stop()
    await mirror.agrees()
    expect([...mirror.again].filter(id => !busy.includes(id))).toEqual([])
  })
})

describe('on one server', () => {
  test('a row that comes after its attempt was given up changes nothing', async () => {
    await open(onOneServer)
    let isStill = false
    const goOn = Promise.withResolvers<void>()
    const from = live.databases.generation
    const still = obstructed(live.tables, {
      async before({ text }) {
        if (isStill) return goOn.promise
        if (!isPromotion(text)) return
        isStill = true
        await append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
        // The projectors give it up, and fold.
        await live.settled()
        goOn.resolve()
      },
    })
    await expect(live.rebuild({ tables: still })).rejects.toBeInstanceOf(AttemptLost)
    expect(live.databases.generation).toBe(from)
    await expectTruth()
    await live.rebuild()
    await expectTruth()
    expect(live.databases.generation).toBe(from + 1)
  })

  test('a leader that has not noticed the row writes nothing any more, and does not get the fold back', async () => {
    await open(onOneServer)
    const before = presentOf(live.databases)
    await live.stopProjector()
    const { foldWorker: follower } = createTestFoldWorker(live.tables, live.databases)
    await follower.acquireLeadership()
    const { foldWorker } = createTestFoldWorker(live.tables, before)
    await foldWorker.acquireLeadership()
    await damage(live, spoiltTitle)
    await live.rebuild()
    await createIngest(live.tables, before, 'late')([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
    const rows = () => column(live.tables, `SELECT count() AS value FROM ${before.read}.campaigns`)
    const written = await rows()
    await expect(foldWorker.fold()).rejects.toBeInstanceOf(FoldPaused)
    await expect(foldWorker.acquireLeadership()).rejects.toBeInstanceOf(FoldPaused)
    expect(await rows()).toEqual(written)
    // Its databases have followed the row in the middle of its term. That is no second projector.
    await live.databases.follow(live.tables)
    await createIngest(live.tables, live.databases, 'again')(events.slice(0, 3))
    await expect(follower.fold()).rejects.toBeInstanceOf(FoldPaused)
    await live.startProjector()
    await expectTruth()
  })

  test.each([
    { name: 'a projector that stood still', stands: () => true },
    { name: 'a projector whose insert stood still', stands: ({ kind }: TablesCall) => kind === 'insert' },
  ])('$name until its generation was dropped follows the row, and loses nothing', async ({ stands }) => {
    let still: Promise<void> | undefined
    let former = ''
    let hasFollowed = false
    const tables = obstructed(model.tables, {
      before: call => {
        if (former !== '' && live.databases.ledger !== former)
          hasFollowed ||= call.text.includes(`${live.databases.ledger}.positions`)
        return stands(call) ? still : undefined
      },
    })
    await open(async () => {
      live = await openRebuildableModel({ tables, freshDatabases: () => model.freshDatabases() }, { hurry })
    })
    former = live.databases.ledger
    const goOn = Promise.withResolvers<void>()
    still = goOn.promise
    await append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
    await live.rebuild({ tables: model.tables })
    await dropOthers({ ...live, tables: model.tables })
    // Whatever of it does not stand still has followed the row by then, and has found its new positions.
    if (!stands(aReading)) await vi.waitUntil(() => hasFollowed, { timeout: 60_000, interval: 20 })
    still = undefined
    goOn.resolve()
    await expectTruth()
  })
})

const aReading: TablesCall = { kind: 'rows', text: '', query_params: {} }
