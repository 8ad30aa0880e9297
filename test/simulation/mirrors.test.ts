/**
 * The proof of what the README promises to those who mirror the API: over many worlds, in which all goes wrong that the
 * design allows for, every copy holds in the end what the platform says.
 */
import { describe, expect, test } from 'vitest'
import { figuresOf, playWorlds, proofSeeds, seedsOf, withLosses } from '../support/simulation/seeds.ts'
import { playWorld } from '../support/simulation/world.ts'

const timeoutMs = 600_000

describe('a mirror', () => {
  test('misses no change and keeps nothing that is gone, whatever happens to the services', {
    timeout: timeoutMs,
  }, async () => {
    // Lists come from the index in one half of the worlds, from ClickHouse in the other.
    const outcomes = await playWorlds(seedsOf({ count: proofSeeds }), seed => ({ usesIndex: seed % 2 === 0 }))
    console.log(`simulation: ${figuresOf(outcomes)}`)
    expect(withLosses(outcomes)).toEqual([])
  })

  test('plays the same world the same way each time', async () => {
    // The index lets others go first when it has worked for long, which real time decides.
    const options = { usesIndex: false }
    for (const seed of seedsOf({ count: 6 })) {
      expect(await playWorld(seed, options)).toEqual(await playWorld(seed, options))
    }
  })
})
