/** Projectors that are killed, added and stopped, whose clock is wrong, and that read what is not an event. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { keptRejects } from '../../support/projector/reject-filters.ts'
import { intBetween, pick } from '../../support/runner/random.ts'
import { type Stage, sessionMs } from '../stage/stage.ts'
import { batchesIn, currentOf, until, untilItMoves } from '../stage/watch.ts'

// The circuit breaker looks at 1,000 records, and trips above a tenth of them: test/end-to-end/reject-memory.
const burst = 60
const clockMsMax = 3_000_000

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
export async function setProjectorClock({ places, random, tables }: Stage): Promise<void> {
  const next = random('clock')
  const place = pick(next, places)
  const byMs = intBetween(next, -clockMsMax, clockMsMax)
  const wrong = `const now = Date.now; Date.now = () => now() + ${byMs}`
  await place.restart({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(wrong)}` })
  await place.ready()
  await untilItMoves(tables)
  await place.restart()
  await place.ready()
}

/** A third projector joins, so the group rebalances while batches are on their way, and leaves again. */
export async function addProjector({ tables, newPlace }: Stage): Promise<void> {
  const third = newPlace()
  await third.ready()
  await untilItMoves(tables)
  expect(await third.stop()).toBe(0)
}

/** A projector is stopped, maybe during a fold, until the group has given up on it and the other leads. Then both continue. */
export async function stallProjector({ places, random, tables }: Stage): Promise<void> {
  const place = pick(random('stall'), places)
  place.signal('SIGSTOP')
  await delay(2 * sessionMs)
  await untilItMoves(tables)
  place.signal('SIGCONT')
}

/** A burst of records that are not events, so few that the projectors continue and keep them. */
export async function poisonBelowGate(stage: Stage): Promise<void> {
  const { traffic, tables, databases } = stage
  await traffic.poison(burst)
  await until(async () => (await keptRejects(tables, databases)).length >= traffic.poisoned().length)
}
