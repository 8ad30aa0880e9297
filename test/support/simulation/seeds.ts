/** Which worlds a test plays, and its output. SIMULATION_SEED=n plays one world; SIMULATION_SEEDS=n plays this many. */

import { type Simulated, simulate } from '../../prove/simulated.ts'
import { type Climate, climateOf } from './scenario.ts'
import type { WorldOptions } from './world.ts'

/**
 * How many worlds the proof plays, unless the environment sets a number. Each safeguard that is removed (safeguards.test.ts) is missed
 * by one of the first 144 worlds, on replicas by one of the first 20.
 */
export const proofSeeds = Number(process.env.SIMULATION_SEEDS ?? 150)
const onlySeed = process.env.SIMULATION_SEED

/** The worlds of the proof, from 1 on. If a climate is given, only its worlds. */
export function seedsOf({ count, climate }: { count: number; climate?: Climate }): number[] {
  if (onlySeed !== undefined) return [Number(onlySeed)]
  const seeds: number[] = []
  for (let seed = 1; seeds.length < count; seed++) {
    if (climate === undefined || climateOf(seed) === climate) seeds.push(seed)
  }
  return seeds
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
