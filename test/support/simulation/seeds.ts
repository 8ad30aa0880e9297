/** Which worlds a test plays, and its output. SIMULATION_SEED=n plays one world; SIMULATION_SEEDS=n plays those from 1 to n. */
import { type Simulated, simulate } from '../../prove/simulated.ts'
import { type Climate, climateOf } from './scenario.ts'
import type { WorldOptions } from './world.ts'

/** How many worlds the proof plays, unless the environment sets a number. */
export const proofSeeds = Number(process.env.SIMULATION_SEEDS ?? 90)
/**
 * The tests remove each safeguard once (safeguards.test.ts). One of the first 20 worlds shows the damage, but for this safeguard it takes a
 * later one. Its number is here, and mirrors.test.ts plays it, too.
 */
export const rareSeeds = { wait: 300 }
const onlySeed = process.env.SIMULATION_SEED

/** The worlds of the proof, from 1 on, and further ones. If a climate is given, only its worlds. */
export function seedsOf(
  count: number,
  { climate, also = [] }: { climate?: Climate; also?: readonly number[] } = {},
): number[] {
  if (onlySeed !== undefined) return [Number(onlySeed)]
  const seeds = new Set<number>()
  for (let seed = 1; seeds.size < count; seed++) {
    if (climate === undefined || climateOf(seed) === climate) seeds.add(seed)
  }
  return [...seeds.union(new Set(also))]
}

/** Plays a world. An error names its seed. */
export async function play(seed: number, options: WorldOptions): Promise<Simulated> {
  try {
    return await simulate(seed, options)
  } catch (cause) {
    throw new Error(`SIMULATION_SEED=${seed}: ${cause}`, { cause })
  }
}

/** Plays worlds until one has a loss. Resolves with its seed. */
export async function seedWithLosses(
  seeds: readonly number[],
  options: WorldOptions,
): Promise<number | undefined> {
  for (const seed of seeds) if ((await play(seed, options)).violations.length > 0) return seed
  return undefined
}
