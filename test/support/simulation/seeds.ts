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
export function seedsOf({
  count,
  climate,
  also = [],
}: {
  count: number
  climate?: Climate
  also?: readonly number[]
}): number[] {
  if (onlySeed !== undefined) return [Number(onlySeed)]
  const seeds = new Set<number>()
  for (let seed = 1; seeds.size < count; seed++) {
    if (climate === undefined || climateOf(seed) === climate) seeds.add(seed)
  }
  return [...seeds.union(new Set(also))]
}

/** Plays one world after the other. An error names its seed. */
export async function playWorlds(
  seeds: readonly number[],
  optionsOf: (seed: number) => WorldOptions,
): Promise<Simulated[]> {
  const outcomes: Simulated[] = []
  for (const seed of seeds) {
    try {
      outcomes.push(await simulate(seed, optionsOf(seed)))
    } catch (cause) {
      throw new Error(`SIMULATION_SEED=${seed}: ${cause}`, { cause })
    }
  }
  return outcomes
}

/** Plays worlds until one has a loss. Resolves with its seed. */
export async function seedWithLosses(
  seeds: readonly number[],
  options: WorldOptions,
): Promise<number | undefined> {
  for (const seed of seeds) {
    const outcomes = await playWorlds([seed], () => options)
    if (withLosses(outcomes).length > 0) return seed
  }
  return undefined
}

/** Those in which a copy was wrong at the end, or an answer at any time. */
export function withLosses(outcomes: readonly Simulated[]): Simulated[] {
  return outcomes.filter(({ losses, violations }) => losses.length + violations.length > 0)
}

/** The figures of many worlds, in one line. */
export function figuresOf(outcomes: readonly Simulated[]): string {
  const sum = (of: (outcome: Simulated) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0).toLocaleString('en')
  const most = (of: (outcome: Simulated) => number) => Math.round(Math.max(...outcomes.map(of)) / 1_000)
  const hours = Math.round(outcomes.reduce((total, { lastedMs }) => total + lastedMs, 0) / 3_600_000)
  return (
    `${outcomes.length.toLocaleString('en')} seeds, ${sum(({ changes }) => changes)} changes, ` +
    `${sum(({ polls }) => polls)} polls in ${sum(({ requests }) => requests)} requests, ` +
    `${sum(({ counts }) => counts.late)} statements that began after their caller had lost them, ` +
    `${sum(({ counts }) => counts.alone)} folds of campaigns in quarantine, ` +
    `calm at most ${most(({ calmedMs }) => calmedMs)} s after the faults, ` +
    `the watermark then at most ${most(({ behindMs }) => behindMs)} s old, ` +
    `${hours} h of virtual time: ${withLosses(outcomes).length} seeds with losses`
  )
}
