/**
 * Shows that the simulation can find losses: in worlds that lose nothing (see mirrors.test.ts), one safeguard is removed, and
 * then copies are wrong at the end.
 */
import { describe, expect, test } from 'vitest'
import type { Climate } from '../support/simulation/scenario.ts'
import { playWorlds, seedsOf, withLosses } from '../support/simulation/seeds.ts'
import { allSafeguards, type Safeguards } from '../support/simulation/world.ts'

const worldsEach = 100

describe('a mirror loses changes', () => {
  test.each<{ without: (keyof Safeguards)[]; climate: Climate; what: string; hasReplicas?: boolean }>([
    { without: ['floor', 'horizon'], climate: 'mixed', what: 'watermarks do not stay behind the clock' },
    { without: ['inclusiveBound'], climate: 'coarse', what: 'updated_since is exclusive' },
    { without: ['snapshots'], climate: 'slow', what: 'pages come from lists that move' },
    {
      without: ['floor', 'restamping'],
      climate: 'mixed',
      what: 'late and unseen folds are not stamped anew',
    },
    { without: ['floor'], climate: 'coarse', what: 'clocks step and horizons differ, without a stamp floor' },
    {
      without: ['staging'],
      climate: 'mixed',
      what: 'a fold of a single campaign that takes long is shown as it is',
    },
    {
      without: ['refusal'],
      climate: 'mixed',
      what: 'replicas take an insert while the one before is undecided',
      hasReplicas: true,
    },
  ])('when $what', { timeout: 600_000 }, async ({ without, climate, hasReplicas = false }) => {
    const safeguards = { ...allSafeguards, ...Object.fromEntries(without.map(name => [name, false])) }
    const seeds = seedsOf({ count: worldsEach, climate })
    const outcomes = await playWorlds(seeds, () => ({ usesIndex: false, safeguards, hasReplicas }))
    const lost = withLosses(outcomes)
    console.log(
      `simulation without ${without.join(' and ')}: ${lost.length} of ${outcomes.length} seeds with losses`,
    )
    expect(lost.length).toBeGreaterThan(0)
  })
})
