/**
 * That the simulation can find losses: in worlds that lose nothing (mirrors.test.ts plays them too), one safeguard is taken
 * away, and copies end up wrong.
 */
import { describe, expect, test } from 'vitest'
import type { Climate } from '../support/simulation/scenario.ts'
import { playWorlds, seedsOf, withLosses } from '../support/simulation/seeds.ts'
import { allSafeguards, type Safeguards } from '../support/simulation/world.ts'

const worldsEach = 100

describe('a mirror loses changes', () => {
  test.each<{ without: keyof Safeguards; climate: Climate; what: string }>([
    { without: 'horizon', climate: 'mixed', what: 'watermarks do not stay behind the clock' },
    { without: 'inclusiveBound', climate: 'coarse', what: 'updated_since is exclusive' },
    { without: 'snapshots', climate: 'slow', what: 'pages come from lists that move' },
    { without: 'restamping', climate: 'mixed', what: 'late and unseen folds are not stamped anew' },
  ])('when $what', { timeout: 600_000 }, async ({ without, climate }) => {
    const safeguards = { ...allSafeguards, [without]: false }
    const seeds = seedsOf({ count: worldsEach, climate })
    const outcomes = await playWorlds(seeds, () => ({ usesIndex: false, safeguards }))
    const lost = withLosses(outcomes)
    console.log(`simulation without ${without}: ${lost.length} of ${outcomes.length} seeds with losses`)
    expect(lost.length).toBeGreaterThan(0)
  })
})
