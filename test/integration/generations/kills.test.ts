/**
 * A rebuild of two shards is killed in each of its phases, and then at some statements of its promotion, beside traffic and a
 * mirror. It continues where it was. A promotion is whole or has not happened. In the end the model has what the events say, with the
 * stamps that it had, and the mirror has missed nothing and fetched nothing again.
 *
 * PLEDGEVIEW_TEST_SEED repeats the places of the kills.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { AttemptLost } from '../../../services/generations/attempts.ts'
import { startQueryService } from '../../../services/query/service.ts'
import { memoryState } from '../../../services/query/shared-state.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { type Place, poll } from '../../simulation/documented-loop.ts'
import { obstructed } from '../../support/clickhouse/faulty-tables.ts'
import { startShards } from '../../support/clickhouse/shards.ts'
import { readModelOf } from '../../support/events/model.ts'
import { apiKeyEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import {
  phaseIn,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../support/generations/rebuilds.ts'
import { openRebuildableShards } from '../../support/generations/shard-rebuilds.ts'
import { column, foldFaults, noFoldFaults } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { pepper } from '../../support/query/app.ts'
import { intBetween, randomOf } from '../../support/runner/random.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const key = 'pv_live_0123456789abcdefghijklmnop'
const secret = 'a secret of the tests'
// Whoever waits for a promotion gives it up after three seconds, and not after a minute.
const hurry = 20
const busy = ['c1', 'c2', 'c3']
/** The phases before the promotion. */
const phases = ['reading log', 'folding', 'catching up', 'verifying'] as const
const killsPerPhase = 2
const statementMax = 5
const statementsBetweenKills = 20

let live: RebuildableModel
const events: ChangeEvent[] = [
  ...platformHistory(25),
  apiKeyEvent({ key, account_id: 'reader', secret_hash: hashSecret(pepper, secret) }),
]
const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.toReversed()) await close()
})

/** Where a kill happens: at a numbered statement of one of the phases. */
interface Kill {
  place: (typeof phases)[number] | 'promoting'
  statement: number
  /** Whether ClickHouse has run the statement. */
  isAfter: boolean
}

/** Tables of a process that dies at this place, and never runs another statement. */
function mortals({ place, statement, isAfter }: Kill) {
  let at: string | undefined
  let count = 0
  let isDead = false
  const dieIf = (mustDie: boolean) => {
    isDead ||= mustDie && at === place && count >= statement
    if (isDead) throw new Error('killed')
  }
  const dying = (tables: Tables): Tables => {
    const own = obstructed(tables, {
      before() {
        if (at === place) count++
        dieIf(!isAfter)
      },
      after: () => dieIf(isAfter),
    })
    return {
      ...own,
      async run(statement, options) {
        at = phaseIn(statement) ?? at
        await own.run(statement, options)
      },
    }
  }
  return { dying, hasDied: () => isDead }
}

/** Whether the rebuild was killed. It may be over before. On a busy machine it may be given up although it lives: then it is tried again. */
async function isKilled(kill: Kill, triesLeft = 3): Promise<boolean> {
  const { dying, hasDied } = mortals(kill)
  const outcome = await live
    .rebuild({ tables: dying(live.tables), tablesOfShard: shard => dying(shard.tables) })
    .catch((error: unknown) => error)
  if (!hasDied() && outcome instanceof AttemptLost && triesLeft > 0) return isKilled(kill, triesLeft - 1)
  if (!hasDied() && outcome instanceof Error) throw outcome
  return hasDied()
}

test(`a rebuild that is killed anywhere continues: nothing is lost or stamped, and a mirror misses nothing and fetches nothing again (seed ${seed})`, {
  // It takes more than four minutes beside other suites: a slower promotion has more statements, and so more kills.
  timeout: 1_500_000,
}, async () => {
  const random = randomOf(seed, 'rebuild kills')
  const servers = await startShards(2)
  closers.push(() => servers.stop())
  live = await openRebuildableShards(servers, { hurry })
  closers.push(() => live.close())
  await live.append(events)
  await live.settled()
  const mirror = await startMirror()
  const stamps = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
  const stopTraffic = startTraffic()
  const deaths: string[] = []
  const isDeadAt = async (kill: Kill) => {
    const isDead = await isKilled(kill)
    if (isDead) deaths.push(`${kill.place} (${kill.statement}, ${kill.isAfter ? 'after' : 'before'})`)
    return isDead
  }
  for (const place of phases)
    for (let n = 0; n < killsPerPhase; n++)
      await isDeadAt({ place, statement: intBetween(random, 1, statementMax), isAfter: n % 2 === 0 })
  const promotingFrom = deaths.length
  for (let statement = 1; ; statement += statementsBetweenKills) {
    if (!(await isDeadAt({ place: 'promoting', statement, isAfter: random() < 0.5 }))) break
    // Nobody stops the fold for ever.
    const before = await shownPledges()
    await vi.waitFor(async () => expect(await shownPledges()).toBeGreaterThan(before), {
      timeout: 60_000,
      interval: 100,
    })
  }
  console.log(`killed ${deaths.join(', ')}`)
  expect(promotingFrom).toBe(phases.length * killsPerPhase)
  expect(deaths.length - promotingFrom).toBeGreaterThan(3)
  await stopTraffic()
  await live.settled()
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
  const changed = (await stampsOf(live)).filter(({ id, at }) => stamps.get(id) !== at).map(({ id }) => id)
  expect(changed).toEqual(busy)
  for (const { tables, databases } of live.cluster?.shards ?? []) {
    // The promotion takes epochs, too.
    expect({ ...(await foldFaults(tables, databases)), epochs: [] }).toEqual(noFoldFaults)
  }
  await mirror.stop()
  await mirror.agrees()
  expect([...mirror.again].filter(id => !busy.includes(id))).toEqual([])
})

/** Of the current generation: the traffic makes it grow. */
async function shownPledges(): Promise<number> {
  const query = `SELECT sum(pledge_count) AS value FROM ${live.databases.read}.campaigns FINAL`
  return Number((await column(live.tables, query))[0])
}

function startTraffic(): () => Promise<void> {
  let isOver = false
  const running = (async () => {
    for (let n = 0; !isOver; n++) {
      const event = pledgeEvent({ campaign_id: String(busy[n % 3]), pledge_id: `more${n}` })
      events.push(event)
      await live.append([event])
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
          expect(withoutDays(copy)).toEqual(withoutDays(whole.copy))
        },
        { timeout: 60_000, interval: 300 },
      )
      expect(copy.size).toBe(readModelOf(events).campaigns.size)
    },
  }
}

/** The days that remain change at midnight, and `updated_at` does not. */
function withoutDays(copy: Place['copy']) {
  return Object.fromEntries([...copy].map(([id, { days_remaining: _, ...project }]) => [id, project]))
}
