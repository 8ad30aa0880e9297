/** Worlds of the simulation, whose every answer the checker reads as well: whether a watermark lied, and not only whether a copy is wrong at the end. */
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { campaignEvent, campaignTombstone } from '../support/events/sample-events.ts'
import { drawScenario } from '../support/simulation/scenario.ts'
import { type Outcome, playWorld, type WorldOptions } from '../support/simulation/world.ts'
import { checkLists } from './checker/lists.ts'
import type { Log, Violation } from './checker/log.ts'
import { worldOf } from './checker/truth.ts'
import { ageOf } from './stage/recorder.ts'

export interface Simulated extends Outcome {
  violations: Violation[]
}

export async function simulate(seed: number, options: WorldOptions): Promise<Simulated> {
  const changes = drawScenario(seed).batches.flatMap(batch => batch.changes)
  const events = changes.map(
    ({ id, version, state }): ChangeEvent =>
      state ? campaignEvent({ campaign_id: id, version, ...state }) : campaignTombstone(id),
  )
  // Any of it may have been said at any time.
  const log: Log = { rows: [], entries: [{ kind: 'said', at: 0, events }] }
  const outcome = await playWorld(seed, {
    ...options,
    onAnswer({ response, body, ...answer }) {
      if (response.status !== 200) return
      const [asOf, snapshot] = ['x-data-as-of', 'x-snapshot-id'].map(name => response.headers.get(name) ?? '')
      const ageMs = ageOf(answer.path, response.headers.get('age'))
      const { data, pagination: page } = JSON.parse(body)
      const isRemovals = answer.path.startsWith('/removals')
      log.entries.push({
        ...{ kind: 'answer', reader: 'a poller', key: '', status: 200, expected: [200], ageMs, page },
        ...{ asOf: Date.parse(asOf ?? ''), snapshot: snapshot ?? '' },
        ...answer,
        ...(isRemovals
          ? { removals: data }
          : { rows: data.map((row: Log['rows'][0]) => log.rows.push(row) - 1) }),
      })
    },
  })
  return { ...outcome, violations: checkLists(worldOf(log)) }
}
