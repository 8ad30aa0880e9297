/** Query processes that are killed or stopped, Redis that is away, keys that are revoked, and a client that asks for more than its limit. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import type { Place } from '../../support/faults/places.ts'
import { keyHeaders } from '../../support/query/app.ts'
import type { AnyResponse } from '../../support/query/shape.ts'
import { intBetween, pick } from '../../support/runner/random.ts'
import { now } from '../stage/recorder.ts'
import { cacheMs, type Stage } from '../stage/stage.ts'
import { until, untilItMoves, untilReady } from '../stage/watch.ts'

const burst = 80
const keyPauseMs = 150

/** kill -9 of a query process, which is started again at once on its port. */
export async function killQuery({ queries, random, recorder }: Stage): Promise<void> {
  const process = pick(random('query'), [...queries.keys()])
  const place = queries[process]
  await recorder.disturbed(
    'silence',
    async () => {
      await place?.kill()
      place?.start()
      await untilReady(place)
    },
    process,
  )
}

/** A query process stands still, and continues: what it knew is old by then. */
export async function pauseQuery({ queries, random, recorder }: Stage): Promise<void> {
  const next = random('pause')
  const process = pick(next, [...queries.keys()])
  await recorder.disturbed(
    'silence',
    async () => {
      queries[process]?.child().kill('SIGSTOP')
      await delay(intBetween(next, 1_000, 6_000))
      queries[process]?.child().kill('SIGCONT')
      await untilReady(queries[process])
    },
    process,
  )
}

/** All of them, and the projectors, with further settings. */
export async function restartAll(stage: Stage, settings: Readonly<Record<string, string>>): Promise<void> {
  const { queries, places, recorder, tables } = stage
  const restart = async (place: Place) => {
    await place.kill()
    place.start(settings)
  }
  for (const place of places) await restart(place)
  for (const [process, place] of queries.entries())
    await recorder.disturbed('silence', () => restart(place).then(() => untilReady(place)), process)
  await untilItMoves(tables)
}

/** A key is issued, used of both processes all the time, and revoked. It is used on until each process knows. */
export async function revokeKeys(stage: Stage): Promise<void> {
  const { keys, traffic } = stage
  const { credentials, event } = keys.issue(`account ${traffic.records()}`)
  await traffic.say([event])
  await useUntilRefused(stage, credentials, () => traffic.say([keys.revoke(credentials.key)]))
}

export async function useUntilRefused(
  { recorder, queries, random, revoke }: Stage,
  credentials: Credentials,
  ask: () => Promise<unknown>,
): Promise<void> {
  const next = random('revoke')
  const stopping = new AbortController()
  const admitted = new Set<number>()
  const refused = new Set<number>()
  const running = [...queries.keys()].map(async process => {
    while (!stopping.signal.aborted) {
      const expected = [200, 401, 429]
      const response = await recorder.ask({
        reader: 'the revoked',
        process,
        path: '/stats',
        credentials,
        expected,
      })
      if (response?.status === 200) admitted.add(process)
      if (response?.status === 401 && admitted.has(process)) refused.add(process)
      await delay(queries.length * keyPauseMs * 4)
    }
  })
  await until(() => admitted.size === queries.length)
  await delay(intBetween(next, 0, 2_000))
  await revoke(credentials.key, ask)
  // It must not come back when the fold takes it out of the view.
  await until(() => refused.size === queries.length)
  await delay(intBetween(next, 2_000, 4_000))
  stopping.abort()
  await Promise.all(running)
}

/** A client asks until it is refused, with new keys until the processes shared their limits all that time. */
export async function askTooMuch(stage: Stage): Promise<void> {
  const { log } = stage.recorder
  await until(async () => {
    const from = now()
    const drink = await thirsty(stage)
    while (!(await drink()).some(response => response?.status === 429));
    return !log.entries.some(
      entry => entry.kind === 'disturbed' && entry.what === 'limits' && entry.to >= from,
    )
  })
}

/** Returns what asks for many answers at once, of all processes, with one new key. */
async function thirsty({
  traffic,
  keys,
  queries,
  recorder,
}: Stage): Promise<() => Promise<(AnyResponse | undefined)[]>> {
  const { credentials, event } = keys.issue(`thirsty ${traffic.records()}`)
  await traffic.say([event])
  for (const process of queries.keys()) {
    const path = '/stats'
    await until(
      async () =>
        (
          await recorder.ask({
            reader: 'the thirsty',
            process,
            path,
            expected: [200, 401],
            headers: keyHeaders(credentials),
          })
        )?.status === 200,
      1_000,
    )
  }
  return () =>
    Promise.all(
      Array.from({ length: burst }, (_, n) =>
        recorder.ask({
          reader: 'the thirsty',
          process: n % queries.length,
          path: '/stats',
          credentials,
          expected: [200, 429],
        }),
      ),
    )
}

/** Redis is killed, started again empty, and silent, while a client asks for more than its limit. */
export async function takeRedisAway(stage: Stage): Promise<void> {
  const { services, queries, recorder } = stage
  const drink = await thirsty(stage)
  const areShared = async () => {
    const told = queries.map(async place => (await fetch(`${(await place.ready()).opsUrl}/readyz`)).text())
    return (await Promise.all(told)).every(text => text.includes('limits are shared, caches are shared'))
  }
  const limits = <T>(work: () => Promise<T>) => recorder.disturbed('limits', work)
  await drink()
  await limits(async () => {
    await services.redis.kill()
    await drink()
    await services.redis.restart()
    await until(areShared)
  })
  await drink()
  await limits(async () => {
    services.redis.pause()
    await drink()
    await delay(2 * cacheMs)
    services.redis.resume()
    await until(areShared)
  })
  await drink()
}
