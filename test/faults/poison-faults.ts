/** A burst of records that are not events. */
import { expect } from 'vitest'
import { keptRejects } from '../support/faults/log-checks.ts'
import type { Figures, Stage } from '../support/faults/stage.ts'
import { until, untilItMoves } from './watch.ts'

// The circuit breaker looks at 1,000 records, and trips above a tenth of them.
const burstBelow = 60
const burstAbove = 800

/** So few that the projectors continue and keep them. */
export async function poisonBelowGate({ traffic, tables, databases }: Stage): Promise<Figures> {
  await traffic.poison(burstBelow)
  await untilItMoves(tables)
  const isKept = async () =>
    Object.keys(await keptRejects({ tables, databases })).length >= traffic.poisoned().length
  await until(isKept)
  return { poison: burstBelow }
}

/** So many that both projectors stop. They continue when they are told to let all of them pass. */
export async function poisonAboveGate({ traffic, tables, databases, places }: Stage): Promise<Figures> {
  const before = traffic.poisoned().length
  await traffic.poison(burstAbove)
  await until(() => places.every(place => place.hasEnded()))
  for (const place of places) {
    expect(place.child().exitCode).toBe(1)
    expect(place.output()).toContain('Too many of the recent records were rejected')
    expect(place.output()).toContain('PLEDGEVIEW_REJECT_SHARE_MAX=1')
  }
  // The burst did not drain into the dead-letter queue.
  const kept = await keptRejects({ tables, databases })
  const drained = Object.keys(kept).length - before
  expect(drained).toBeLessThan(burstAbove / 2)
  for (const place of places) place.start({ PLEDGEVIEW_REJECT_SHARE_MAX: '1' })
  await Promise.all(places.map(place => place.ready()))
  const isKept = async () =>
    Object.keys(await keptRejects({ tables, databases })).length >= traffic.poisoned().length
  await until(isKept)
  for (const place of places) {
    const exitCode = await place.stop()
    expect(exitCode, place.output().slice(-2_000)).toBe(0)
    place.start()
  }
  await Promise.all(places.map(place => place.ready()))
  return { poison: burstAbove, 'rejected before they stopped': drained }
}
