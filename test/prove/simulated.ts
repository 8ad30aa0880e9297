/** Worlds of the simulation, whose every answer the checker reads as well: whether a watermark lied, and not only whether a copy is wrong at the end. */
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { campaignEvent, campaignTombstone } from '../support/events/sample-events.ts'
import { intBetween, randomOf } from '../support/runner/random.ts'
import { drawScenario } from '../support/simulation/scenario.ts'
import { type Outcome, playWorld, type WorldOptions } from '../support/simulation/world.ts'
import { checkLists } from './checker/lists.ts'
import type { Entry, Violation } from './checker/log.ts'
import { worldOf } from './checker/truth.ts'
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
  const changes = drawScenario(seed).batches.flatMap(batch => batch.changes)
  const events = changes.map(
    ({ id, version, state }): ChangeEvent =>
      state ? campaignEvent({ campaign_id: id, version, ...state }) : campaignTombstone(id),
  )
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
  return { ...outcome, violations: checkLists(worldOf(log)) }
}
