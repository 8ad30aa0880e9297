/** Query processes that are killed or stopped, Redis that is away, and a client that asks for more than its limit. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Place } from '../../support/faults/places.ts'
import type { AnyResponse } from '../../support/query/shape.ts'
import { intBetween, pick, type Random } from '../../support/runner/random.ts'
import { now } from '../stage/recorder.ts'
import { cacheMs, type Stage } from '../stage/stage.ts'
import { askOps, until, untilReady } from '../stage/watch.ts'

const burst = 80

/** kill -9 of a query process, which is started again at once on its port. */
export async function killQuery(stage: Stage): Promise<void> {
  await disturbOne(stage, stage.random('query'), place => place.restart())
}

/** A query process stands still, and continues: what it knew is old by then. */
export async function pauseQuery(stage: Stage): Promise<void> {
  const next = stage.random('pause')
  await disturbOne(stage, next, async place => {
    place.signal('SIGSTOP')
    await delay(intBetween(next, 1_000, 6_000))
    place.signal('SIGCONT')
  })
}

/** One of the query processes may not answer until it is ready again. */
async function disturbOne(
  { queries, recorder }: Stage,
  random: Random,
  work: (place: Place) => Promise<void>,
): Promise<void> {
  const [process, place] = pick(random, [...queries.entries()])
  await recorder.disturbed('silence', () => work(place).then(() => untilReady(place)), process)
}

/** A client asks until it is refused, with new keys until the processes shared their limits all that time. */
export async function askTooMuch(stage: Stage): Promise<void> {
  await until(async () => {
    const drink = await thirsty(stage)
    const from = now()
    while (!(await drink()).some(response => response?.status === 429));
    return !stage.recorder.log.some(
      entry => entry.kind === 'disturbed' && entry.what === 'limits' && entry.to >= from,
    )
  })
}

/** Returns what asks for many answers at once, of all processes, with one new key. */
async function thirsty(stage: Stage): Promise<() => Promise<(AnyResponse | undefined)[]>> {
  const { traffic, keys, queries, recorder, untilBoth } = stage
  const { credentials, event } = keys.issue(`thirsty ${traffic.records()}`)
  await traffic.say([event])
  await untilBoth('/stats', () => true, credentials)
  const request = { reader: 'the thirsty', path: '/stats', credentials, expected: [200, 429] }
  const processes = Array.from({ length: burst }, (_, n) => n % queries.length)
  return () => Promise.all(processes.map(process => recorder.ask({ ...request, process })))
}

/** Redis is killed and started again empty, and then silent, while a client asks for more than its limit. */
export async function takeRedisAway(stage: Stage): Promise<void> {
  const { redis } = stage.services
  const drink = await thirsty(stage)
  await drink()
  await withoutRedis(stage, () => redis.kill().then(drink), redis.restart)
  await drink()
  await withoutRedis(stage, () => Promise.all([redis.pause(), drink(), delay(2 * cacheMs)]), redis.resume)
  await drink()
}

async function withoutRedis(
  { queries, recorder }: Stage,
  away: () => Promise<unknown>,
  back: () => unknown,
): Promise<void> {
  await recorder.disturbed('limits', async () => {
    await away()
    await back()
    await until(async () => {
      const told = await Promise.all(queries.map(place => askOps(place, '/readyz')))
      return told.every(({ text }) => text.includes('limits are shared, caches are shared'))
    })
  })
}
