/**
 * Shows that the simulation can find losses: in worlds that lose nothing (see mirrors.test.ts), one safeguard is removed, and
 * then copies are wrong at the end, or the checker of all answers (test/prove) finds a watermark that lied.
 */
import { describe, expect, test } from 'vitest'
import { allSafeguards, type Safeguards } from '../support/simulation/safeguards.ts'
import type { Climate } from '../support/simulation/scenario.ts'
import { rareSeeds, seedsOf, seedWithLosses } from '../support/simulation/seeds.ts'

// Without the rarest safeguard, one world of fifty loses something. Most need far fewer.
const worldsMax = 400

interface Removal {
  without: keyof Safeguards
  climate: Climate
  what: string
  /** Whether lists come from the index in memory. */
  usesIndex?: boolean
}

/** Played first: a search takes up to a minute. */
const known: Partial<Record<keyof Safeguards, number>> = rareSeeds

describe('a mirror loses changes', () => {
  test.each<Removal>([
    { without: 'fence', climate: 'late', what: 'a statement that arrives late writes' },
    {
      without: 'newEpoch',
      climate: 'late',
      what: 'a statement whose answer was not seen is sent again',
    },
    { without: 'wait', climate: 'mixed', what: 'a new leader does not wait until no statement runs' },
    { without: 'line', climate: 'mixed', what: 'the watermark passes a statement that runs' },
    { without: 'line', climate: 'mixed', what: 'the list index follows such a watermark', usesIndex: true },
    { without: 'stampAtWatermark', climate: 'mixed', what: 'the clock steps back, and stamps follow it' },
    { without: 'quarantineRecord', climate: 'mixed', what: 'a new leader does not know the quarantine' },
    { without: 'inclusiveBound', climate: 'coarse', what: 'updated_since is exclusive' },
    { without: 'snapshots', climate: 'slow', what: 'pages come from lists that move' },
    { without: 'wholeWalks', climate: 'slow', what: 'a walk over two snapshots counts' },
  ])('when $what', { timeout: 600_000 }, async ({ without, climate, usesIndex = false }) => {
    const safeguards = { ...allSafeguards, [without]: false }
    const seeds = seedsOf(worldsMax, { climate })
    // If the worlds have changed, another one may lose something.
    const inOrder = seeds.toSorted((a, b) => Number(b === known[without]) - Number(a === known[without]))
    const lost = await seedWithLosses(inOrder, { usesIndex, safeguards })
    console.log(`simulation without ${without}: seed ${lost} has losses`)
    expect(lost).toBeDefined()
  })
})
