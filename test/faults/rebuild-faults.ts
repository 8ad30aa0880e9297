/** A rebuild under traffic and readers, killed with and without the projectors. */
import { expect } from 'vitest'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { rebuildThroughKills } from '../support/faults/rebuild-kills.ts'
import type { Figures, Stage } from '../support/faults/stage.ts'
import { saidOf } from '../support/faults/traffic.ts'
import { stampsOf } from '../support/rebuilds.ts'
import { untilItMoves } from './watch.ts'

// The moment at which most can go wrong. test/integration/generations has all others, and so has test/rebuild with processes.
const moments = ['promoting'] as const
const quietCampaigns = 20
// The small batches of the projectors would only make each rebuild read for longer.
const rebuildSettings = { PLEDGEVIEW_BATCH_RECORDS_MAX: '2000' }

/** Campaigns without new events meanwhile keep their stamps. */
export async function rebuildUnderKills(stage: Stage): Promise<Figures> {
  const { random, places, settled, traffic, tables, environment } = stage
  const quiet = Array.from({ length: quietCampaigns }, () => traffic.newPublicHistory())
  await traffic.say(quiet.map(({ id, states }) => ({ type: 'campaign', key: id, data: states[0] ?? null })))
  // What is said from now on must count as said afterwards, also if it is not folded yet when the stamps are read.
  await settled({ staysPaused: true })
  const progress = () =>
    new Map([...traffic.histories()].map(history => [history.id, saidOf(traffic, history).join()]))
  const saidBefore = progress()
  const before = await stamps(stage)
  traffic.resume()
  const deaths = await rebuildThroughKills({
    moments,
    victim: 'both',
    random: random('rebuild'),
    places,
    tables,
    environment: { ...environment, ...rebuildSettings },
  })
  console.log(`killed: ${deaths.join(', ')}`)
  await untilItMoves(tables)
  await settled()
  const saidAfter = progress()
  const untouched = [...before].filter(([id]) => saidBefore.get(id) === saidAfter.get(id))
  expect(untouched.length).toBeGreaterThanOrEqual(quietCampaigns)
  const after = await stamps(stage)
  expect(untouched.map(([id]) => [id, after.get(id)])).toEqual(untouched)
  return {
    kills: deaths.length,
    'campaigns of which nothing new was said, all with their stamps': untouched.length,
  }
}

async function stamps({ tables }: Stage): Promise<Map<string, string>> {
  const rows = await stampsOf({ tables, databases: defaultDatabases })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
