/** Kafka, ClickHouse and Redis become unavailable and return. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { isCampaignFold } from '../support/clickhouse/faulty-tables.ts'
import {
  cacheMs,
  type Figures,
  foldMsMax,
  type Stage,
  sessionMs,
  silenceMs,
} from '../support/faults/stage.ts'
import { keyHeaders } from '../support/query/app.ts'
import { intBetween } from '../support/runner/random.ts'
import { shownTitle, until, untilItMoves, untilStatus } from './watch.ts'

const slowFolds = 2
const stopsOfFolds = 2
// The default of PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX.
const keyLimit = 120
// A minute, less what the clocks of the processes and of Redis may differ by.
const windowMs = 59_000

export async function killBroker({ services, tables }: Stage): Promise<Figures> {
  await services.kafka.halt()
  await delay(sessionMs)
  await services.kafka.resume()
  await untilItMoves(tables)
  return { kills: 1 }
}

/** ClickHouse is killed, and later silent, each for longer than the session and than the timeout of a statement. */
export async function takeClickHouseAway(stage: Stage): Promise<Figures> {
  await stage.withoutClickHouse(async () => {
    await stage.killClickHouse()
    await delay(2 * sessionMs)
    await stage.restartClickHouse()
  })
  await untilItMoves(stage.tables)
  await stopClickHouse(stage, silenceMs + sessionMs)
  await untilItMoves(stage.tables)
  return { kills: 1, stops: 1 }
}

/** Redis is killed, started again empty, and silent, while a client asks for more than its limit. */
export async function takeRedisAway(stage: Stage): Promise<Figures> {
  const { services, traffic, keys, apiUrls, client } = stage
  const { credentials, event } = keys.issue('thirsty')
  const headers = keyHeaders(credentials)
  await traffic.say([event])
  for (const url of apiUrls) {
    await untilStatus(() => client.ask(`${url}/stats`, [200, 401], { headers }), 200)
  }
  const drinks: { from: number; to: number; admitted: number }[] = []
  const drink = async () => {
    const from = performance.now()
    const urls = Array.from({ length: 80 }, (_, n) => `${apiUrls[n % apiUrls.length]}/stats`)
    const asked = await Promise.all(urls.map(url => client.ask(url, [200, 429], { headers })))
    const admitted = asked.filter(one => one?.response.status === 200).length
    drinks.push({ from, to: performance.now(), admitted })
  }
  /** How many were certainly admitted in this time. */
  const admittedIn = (from: number, to: number) =>
    drinks
      .filter(one => one.from >= from && one.to <= to)
      .reduce((total, { admitted }) => total + admitted, 0)
  const areShared = async () => {
    const details = await Promise.all(
      stage.queries.map(async ({ opsUrl }) => (await fetch(`${opsUrl}/readyz`)).text()),
    )
    return details.every(text => text.includes('limits are shared, caches are shared'))
  }
  await drink()
  await services.redis.kill()
  await drink()
  await services.redis.restart()
  await until(areShared)
  await drink()
  services.redis.pause()
  await drink()
  await delay(2 * cacheMs)
  services.redis.resume()
  await until(areShared)
  await drink()
  const sum = admittedIn(0, performance.now())
  expect(sum).toBeGreaterThan(110)
  // Each process alone enforces the limit, in any minute. All of this takes less, unless the machine is very busy.
  for (const { from } of drinks) {
    expect(admittedIn(from, from + windowMs)).toBeLessThanOrEqual(apiUrls.length * keyLimit)
  }
  // Together they do so again once they share their counts.
  const last = drinks.at(-1) ?? { from: 0, to: 0, admitted: sum }
  const before = admittedIn(last.to - windowMs, last.from)
  expect(last.admitted).toBeLessThanOrEqual(Math.max(0, keyLimit - before))
  return { kills: 1, stops: 1, 'admitted of 400 for one key': sum }
}

/** Folds that end long after their stamp, because they are slow or because ClickHouse was stopped. */
export async function slowClickHouseDown(stage: Stage): Promise<Figures> {
  const { proxy, random, tables } = stage
  const next = random('slow')
  for (let fold = 0; fold < slowFolds; fold++) await slowFoldDown(stage)
  for (let stop = 0; stop < stopsOfFolds; stop++) {
    const arrived = Promise.withResolvers<void>()
    const watch = proxy.obstruct({ before: call => void (isCampaignFold(call) && arrived.resolve()) })
    await arrived.promise
    watch()
    // A moment later it runs and has its stamp.
    await delay(intBetween(next, 2, 40))
    await stopClickHouse(stage, 2.4 * foldMsMax)
  }
  await untilItMoves(tables)
  return { 'slow folds': slowFolds, stops: stopsOfFolds }
}

/** Sends one change that becomes visible long after its stamp. */
async function slowFoldDown({ proxy, traffic, tables, mirror, settled }: Stage): Promise<void> {
  await settled()
  await traffic.pause()
  const { id, states } = traffic.newPublicHistory()
  let isSlowed = false
  const release = proxy.obstruct({
    rewrite(call) {
      if (isSlowed || !isCampaignFold(call)) return call.text
      isSlowed = true
      return slowedDown(call.text)
    },
  })
  await traffic.say([{ type: 'campaign', key: id, data: states.at(0) ?? null }])
  await until(async () => (await shownTitle(tables, id)) !== undefined)
  release()
  expect(isSlowed).toBe(true)
  await until(() => mirror.campaigns().has(id))
  traffic.resume()
}

/** Delays the fold's rows beyond its time, with a ClickHouse that does not notice how long the statement takes. */
function slowedDown(fold: string): string {
  const slow = fold
    .replace('\nWHERE if(fresh.', `\nWHERE sleep(${(3.6 * foldMsMax) / 1_000}) = 0 AND if(fresh.`)
    .replace(
      /max_execution_time = [\d.]+/,
      'max_execution_time = 0, function_sleep_max_microseconds_per_block = 0',
    )
  if (!slow.includes('sleep(') || !slow.includes('max_execution_time = 0'))
    throw new Error('the fold reads otherwise')
  return slow
}

/** Accepts connections and answers nothing. */
function stopClickHouse(stage: Stage, ms: number): Promise<void> {
  return stage.withoutClickHouse(async () => {
    stage.signalClickHouse('SIGSTOP')
    await delay(ms)
    stage.signalClickHouse('SIGCONT')
  })
}
