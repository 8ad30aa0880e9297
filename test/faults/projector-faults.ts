/** Projectors that are killed, added and stopped, and that read what is not an event. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { qualified } from '../../services/tables/generations.ts'
import { isCampaignFold, type TablesCall } from '../support/clickhouse/faulty-tables.ts'
import { keptRejects } from '../support/faults/log-checks.ts'
import type { Place } from '../support/faults/places.ts'
import type { Figures, Stage } from '../support/faults/stage.ts'
import { createBarrier, epochOf } from '../support/faults/tables-proxy.ts'
import { column, livesWithBatches } from '../support/projector/fold-records.ts'
import { intBetween, pick } from '../support/runner/random.ts'
import { batchesIn, currentOf, latestEpoch, shownTitle, until, untilItMoves } from './watch.ts'

// Some are killed while they start, most a moment after something was written.
const killsWhileOpening = 2
const killsAtWork = 8
// The circuit breaker looks at 1,000 records, and trips above a tenth of them: test/end-to-end/reject-memory.
const burst = 60

/** kill -9 at random times of one of two projectors, which is started again at once. */
export async function killProjectors({ places, random, tables }: Stage): Promise<Figures> {
  const next = random('kills')
  const current = await currentOf(tables)
  const livesBefore = await livesWithBatches(tables, current)
  const lives = async () => (await livesWithBatches(tables, current)) - livesBefore
  const moments = [
    ...Array.from({ length: killsWhileOpening }, () => ({ at: 'opening', order: next() })),
    ...Array.from({ length: killsAtWork }, () => ({ at: 'work', order: next() })),
  ].toSorted((a, b) => a.order - b.order)
  let place = places[0]
  let livesAtStart = -1
  let killsOfWork = 0
  for (const { at } of moments) {
    if (at === 'work') {
      place = pick(next, places)
      const written = await batchesIn(tables, current)
      await until(async () => (await batchesIn(tables, current)) > written)
      // Chance alone would sometimes kill the same few lives, most of them before they have written. If so far it did, the one
      // that was started last may write first.
      killsOfWork++
      if ((await lives()) < killsOfWork / 2) await until(async () => (await lives()) > livesAtStart)
      await delay(intBetween(next, 0, 250))
    } else {
      // The one that was started last still runs.
      await delay(intBetween(next, 0, 1_000))
    }
    await place.kill()
    livesAtStart = await lives()
    place.start()
  }
  await Promise.all(places.map(one => one.ready()))
  expect(await lives()).toBeGreaterThan(killsAtWork / 3)
  return { kills: moments.length, 'lives with batches': await lives() }
}

/** The group rebalances while a batch is on its way into ClickHouse. */
export async function rebalanceDuringFlush({ proxy, tables, places, newPlace }: Stage): Promise<Figures> {
  await partitionsTold(places)
  const barrier = createBarrier()
  const isFlush = ({ kind, text }: TablesCall) => kind === 'insert' && text.includes('.pledge_ledger ')
  const release = proxy.obstruct({ before: call => (isFlush(call) ? barrier.wait(call) : undefined) })
  await barrier.reached
  const third = newPlace()
  // It is ready once it has partitions, so the rebalance is over by then.
  await third.ready()
  release()
  barrier.open()
  await untilItMoves(tables)
  // Only the third projector reports the partitions that moved to it. On a busy machine the group may be about to move them again.
  await until(async () => {
    const told = await partitionsTold([...places, third])
    return told.length > 0 && new Set(told).size === told.length
  })
  expect(await third.stop()).toBe(0)
  return { joins: 1 }
}

/** The leading projector is stopped during a fold until the other leads. Then both continue. */
export async function stallFoldWorker({ proxy, traffic, tables, places, settled }: Stage): Promise<Figures> {
  await settled()
  await traffic.pause()
  const history = traffic.newPublicHistory()
  const say = (state: number) =>
    traffic.say([{ type: 'campaign', key: history.id, data: history.states.at(state) ?? null }])
  const holdFolds = (isOne: (call: TablesCall) => boolean) => {
    const barrier = createBarrier()
    const release = proxy.obstruct({
      before: call => (isCampaignFold(call) && isOne(call) ? barrier.wait(call) : undefined),
    })
    return {
      reached: barrier.reached,
      release() {
        release()
        barrier.open()
      },
    }
  }
  // Whoever leads by now: the group may have changed a moment ago.
  let first: TablesCall | undefined
  const stalled = holdFolds(call => {
    first ??= call
    return call === first
  })
  await say(0)
  const held = await stalled.reached
  const old = Number(epochOf(held))
  const leader = await leaderOf(places)
  leader.child().kill('SIGSTOP')
  await until(async () => (await latestEpoch(tables)) > old)
  await until(async () => (await shownTitle(tables, history.id)) !== undefined)
  const title = await shownTitle(tables, history.id)
  // Now there is something to fold again, and only the statement of the stopped projector can fold it.
  const present = holdFolds(call => epochOf(call) !== old)
  await say(-1)
  await present.reached
  const answered = Promise.withResolvers<void>()
  const watch = proxy.obstruct({ after: call => void (call === held && answered.resolve()) })
  stalled.release()
  await answered.promise
  watch()
  leader.child().kill('SIGCONT')
  expect(await shownTitle(tables, history.id)).toBe(title)
  await expectNothingFrom(held, old)
  present.release()
  await until(async () => (await shownTitle(tables, history.id)) !== title)
  traffic.resume()
  await untilItMoves(tables)
  await expectNothingFrom(held, old)
  return { stalls: 1, 'epochs taken': (await latestEpoch(tables)) - old }

  /** Neither the statement that was stopped nor a later one under its epoch has left a row. */
  async function expectNothingFrom({ query_params }: TablesCall, epoch: number): Promise<void> {
    const late = `fold_id >= ${query_params.fold_id} AND bitShiftRight(fold_id, 32) = ${epoch}`
    const current = await currentOf(tables)
    for (const table of ['campaigns', 'api_keys', 'fold_progress']) {
      const rows = await column(
        tables,
        `SELECT fold_id AS value FROM ${qualified(table, current)} WHERE ${late}`,
      )
      expect(rows, `rows of a superseded foldWorker in ${table}`).toEqual([])
    }
  }
}

/** A burst of records that are not events, so few that the projectors continue and keep them. */
export async function poisonBelowGate({ traffic, tables, databases }: Stage): Promise<Figures> {
  await traffic.poison(burst)
  await untilItMoves(tables)
  const isKept = async () =>
    Object.keys(await keptRejects({ tables, databases })).length >= traffic.poisoned().length
  await until(isKept)
  return { poison: burst }
}

/** The partitions whose lag each projector reports in its metrics. */
async function partitionsTold(places: readonly Place[]): Promise<string[]> {
  const told = places.map(async place =>
    [...(await metricsOf(place)).matchAll(/^pledgeview_lag_records(\{.*\})/gm)].map(
      ([, labels = '']) => labels,
    ),
  )
  return (await Promise.all(told)).flat()
}

/** The projector that leads the fold. While the group forms anew, none does. */
async function leaderOf(places: readonly Place[]): Promise<Place> {
  const leaders: Place[] = []
  await until(async () => {
    for (const place of places)
      if (/^pledgeview_is_leader 1$/m.test(await metricsOf(place))) leaders.push(place)
    return leaders.length > 0
  })
  const [leader] = leaders
  if (!leader) throw new Error('no projector leads')
  return leader
}

async function metricsOf(place: Place): Promise<string> {
  const { opsUrl } = await place.ready()
  return (await fetch(`${opsUrl}/metrics`)).text()
}
