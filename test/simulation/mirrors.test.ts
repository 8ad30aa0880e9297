/**
 * Proves what the README promises to consumers that mirror the API: over many worlds, with every fault that the design
 * allows for, every copy ends with what the platform says.
 */
import { describe, expect, test } from 'vitest'
import { aloneMsMax } from '../support/simulation/heavy-campaign.ts'
import { play, proofSeeds, rareSeeds, seedsOf } from '../support/simulation/seeds.ts'
import { playWorld } from '../support/simulation/world.ts'

// Lists come from the index in half of the worlds, and from ClickHouse in the other half.
const optionsOf = (seed: number) => ({ usesIndex: seed % 2 === 0 })

describe('a mirror', () => {
  test('misses no change and keeps nothing that is gone, with any faults of the services', {
    timeout: 600_000,
  }, async () => {
    const seeds = seedsOf(proofSeeds, { also: [rareSeeds.wait] })
    const outcomes = []
    for (const seed of seeds) outcomes.push(await play(seed, optionsOf(seed)))
    expect(outcomes.filter(({ violations }) => violations.length > 0)).toEqual([])
    // Of many worlds some, but not each, have a campaign that is too heavy for the common fold, and statements that arrive late.
    if (seeds.length >= 20) {
      expect(outcomes.some(({ counts }) => counts.alone > 0)).toBe(true)
      expect(outcomes.some(({ counts }) => counts.late > 0)).toBe(true)
    }
    // While nothing fails, only the fold of a campaign in quarantine holds the watermark.
    for (const { behindMs } of outcomes) expect(behindMs).toBeLessThan(aloneMsMax + 5_000)
  })

  test('plays the same world the same way each time', async () => {
    for (const seed of seedsOf(6))
      expect(await playWorld(seed, optionsOf(seed))).toEqual(await playWorld(seed, optionsOf(seed)))
  })
})
