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
    const outcomes = await playWorlds(seedsOf({ count: proofSeeds }), () => ({ usesIndex: false }))
    console.log(`simulation, lists by ClickHouse: ${figuresOf(outcomes)}`)
    expect(withLosses(outcomes)).toEqual([])
  })

  // A departure that becomes visible late is not stamped anew, and the index learns of it only as it finds that its count is
  // wrong: until then it is listed. So of the index only this is asked here.
  test('misses no change where lists come from the index', { timeout: timeoutMs }, async () => {
    const seeds = seedsOf({ count: Math.ceil(proofSeeds / 4) })
    const outcomes = await playWorlds(seeds, () => ({ usesIndex: true }))
    console.log(`simulation, lists by the index: ${figuresOf(outcomes)}`)
    const missed = outcomes.flatMap(({ losses }) => losses.filter(({ expected }) => expected !== undefined))
    expect(missed).toEqual([])
  })

  test('plays the same world the same way each time', async () => {
    // The index lets others go first when it has worked for long, which real time decides.
    const options = { usesIndex: false }
    for (const seed of seedsOf({ count: 6 })) {
      expect(await playWorld(seed, options)).toEqual(await playWorld(seed, options))
    }
  })
})
