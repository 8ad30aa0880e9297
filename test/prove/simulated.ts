/** Worlds of the simulation. The checker reads every answer, so it finds a watermark that lied, and the copies at the end. */
import { readModelOf } from '../support/events/model.ts'
import { intBetween, randomOf } from '../support/runner/random.ts'
import { isNeverFolded } from '../support/simulation/heavy-campaign.ts'
import { eventsOf } from '../support/simulation/projectors.ts'
import { drawScenario } from '../support/simulation/scenario.ts'
import { type Outcome, playWorld, type WorldOptions } from '../support/simulation/world.ts'
import { checkLists } from './checker/lists.ts'
import type { Entry, Violation } from './checker/log.ts'
import { worldOf } from './checker/truth.ts'
import { checkCopies } from './checker/whole.ts'
import { headOf } from './stage/recorder.ts'

export interface Simulated extends Outcome {
  violations: Violation[]
}

/** The seed of a proof's simulated world, far from those that CI plays. A proof may have a text as its seed. */
export function simulatedSeed(proof: string, world: number): number {
  const number = /^\d{1,9}$/.test(proof) ? Number(proof) : intBetween(randomOf(proof), 1, 999_999_999)
  return 1_000_000 + 1_000 * number + world
}

export async function simulate(seed: number, options: WorldOptions): Promise<Simulated> {
  const scenario = drawScenario(seed)
  const events = eventsOf(scenario)
  // Any of it may have been said at any time.
  const log: Entry[] = [{ kind: 'said', at: 0, events }]
  const outcome = await playWorld(seed, {
    ...options,
    onAnswer({ response: { status, headers }, body, ...answer }) {
      if (status !== 200) return
      const head = headOf(answer.path, { status, headers: Object.fromEntries(headers) })
      const { data, pagination: page } = JSON.parse(body)
      const shown = answer.path.startsWith('/removals') ? { rows: [], removals: data } : { rows: data }
      const common = { kind: 'answer', key: '', expected: [200] } as const
      log.push({ ...common, ...answer, ...head, ...shown, page })
    },
  })
  for (const { mirror, rows } of outcome.copies) log.push({ kind: 'copy', mirror, rows })
  const { heavy } = scenario
  // As long as it is public, it may show an older state.
  const exempt = isNeverFolded(heavy) && readModelOf(events).campaigns.has(heavy?.id ?? '') && heavy?.id
  const world = worldOf(log)
  const text = 'a mirror that was checked had another state than the service shows'
  const violations = [
    ...checkLists(world),
    ...checkCopies(world).filter(({ about }) => about !== exempt),
    ...outcome.wrong.map(about => ({ rule: 'mirror', about, text, answers: [] })),
  ]
  return { ...outcome, violations }
}
