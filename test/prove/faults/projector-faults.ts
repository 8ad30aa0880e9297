/**
 * Projectors that are killed, added and stopped, whose clock is wrong, and that read what is not an event. And what they need: Kafka that is
 * away, full disks, and a network that is slow or loses answers.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { column } from '../../support/projector/fold-records.ts'
import { keptRejects } from '../../support/projector/reject-filters.ts'
import { intBetween, pick } from '../../support/runner/random.ts'
import { type Stage, sessionMs } from '../stage/stage.ts'
import { batchesIn, currentOf, until } from '../stage/watch.ts'

// The circuit breaker looks at 1,000 records, and trips above a tenth of them: test/integration/projector/service.test.ts.
const burst = 60
const clockMsMax = 3_000_000
const slowMsMax = 300
const refusedMin = 12
const lostMin = 20

/** kill -9 at random times of one of two projectors, which is started again at once: while it starts, or a moment after a write. */
export async function killProjectors({ places, random, tables }: Stage): Promise<void> {
  const next = random('kills')
  const kills = intBetween(next, 3, 7)
  const current = await currentOf(tables)
  for (let kill = 0; kill < kills; kill++) {
    if (kill > 0 && next() < 0.3) await delay(intBetween(next, 0, 1_000))
    else {
      const written = await batchesIn(tables, current)
      await until(async () => (await batchesIn(tables, current)) > written)
      await delay(intBetween(next, 0, 250))
    }
    await pick(next, places).restart()
  }
  await Promise.all(places.map(one => one.ready()))
}

/** A projector that starts with a clock that is up to 50 minutes ahead or behind. Stamps come from ClickHouse's clock. */
export async function setProjectorClock({ places, random, untilItMoves }: Stage): Promise<void> {
  const next = random('clock')
  const place = pick(next, places)
  const byMs = intBetween(next, -clockMsMax, clockMsMax)
  const wrong = `const now = Date.now; Date.now = () => now() + ${byMs}`
  await place.restart({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(wrong)}` })
  await place.ready()
  await untilItMoves()
  await place.restart()
  await place.ready()
}

/** A third projector joins, so the group rebalances while batches are on their way, and leaves again. */
export async function addProjector({ newProjector, untilItMoves }: Stage): Promise<void> {
  const third = newProjector()
  await third.ready()
  await untilItMoves()
  expect(await third.stop()).toBe(0)
}

/** A projector is stopped, maybe during a fold, until the group has given up on it and the other leads. Then both continue. */
export async function stallProjector({ places, random, untilItMoves }: Stage): Promise<void> {
  const place = pick(random('stall'), places)
  place.signal('SIGSTOP')
  await delay(2 * sessionMs)
  await untilItMoves()
  place.signal('SIGCONT')
}

/** A burst of records that are not events, so few that the projectors continue and keep them. */
export async function poisonBelowGate({ traffic, tables, databases }: Stage): Promise<void> {
  await traffic.poison(burst)
  await until(async () => (await keptRejects(tables, databases)).length >= traffic.poisoned().length)
}

export async function killBroker({ services }: Stage): Promise<void> {
  await services.kafka.halt()
  await delay(sessionMs)
  await services.kafka.resume()
}

/**
 * The disks are full: each server has to keep more free than it has, so that ClickHouse itself refuses every insert. Nobody who reads
 * notices.
 */
export async function fillDisks({ folded, tables: log }: Stage): Promise<void> {
  const current = Object.values(await currentOf(log)).map(name => `'${name}'`)
  const own = `SELECT concat(database, '.', name) AS value FROM system.tables
               WHERE database IN (${current.join(', ')}) AND engine LIKE '%MergeTree'`
  const refusals = "SELECT sum(value) AS value FROM system.errors WHERE name = 'NOT_ENOUGH_SPACE'"
  async function alterAll(change: string): Promise<void> {
    for (const { tables } of folded) {
      for (const name of await column(tables, own))
        await tables.run({ query: `ALTER TABLE ${name} ${change}` })
    }
  }
  async function refused(): Promise<number> {
    const counts = await Promise.all(folded.map(({ tables }) => column(tables, refusals)))
    return counts.flat().reduce<number>((sum, count) => sum + Number(count), 0)
  }
  const before = await refused()
  await alterAll('MODIFY SETTING min_free_disk_bytes_to_perform_insert = 1000000000000000')
  await until(async () => (await refused()) >= before + refusedMin)
  await alterAll('RESET SETTING min_free_disk_bytes_to_perform_insert')
}

/** Each statement of the projectors takes longer on its way, and on its way back. */
export async function slowNetworkDown({ obstruct, random, untilItMoves }: Stage): Promise<void> {
  const next = random('network')
  const wait = () => delay(intBetween(next, 0, slowMsMax))
  const release = obstruct({ before: wait, after: wait })
  for (let move = 0; move < 3; move++) await untilItMoves()
  release()
}

/** The answers of some statements are lost on their way. They have run. */
export async function loseAnswers({ obstruct, random }: Stage): Promise<void> {
  const next = random('lost')
  let lost = 0
  const lose = () => {
    if (next() > 0.1) return
    lost++
    throw new Error('the answer is lost')
  }
  const release = obstruct({ after: lose })
  await until(() => lost >= lostMin)
  release()
}
