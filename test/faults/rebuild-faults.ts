/** A rebuild under traffic and readers, killed together with a projector. */
import { once } from 'node:events'
import { expect } from 'vitest'
import { latestRebuild, workPhases } from '../../services/generations/rebuild-log.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { launchProcess, runCli } from '../support/deployment/service-process.ts'
import type { Figures, Stage } from '../support/faults/stage.ts'
import { saidOf } from '../support/faults/traffic.ts'
import { stampsOf } from '../support/generations/rebuilds.ts'
import { pick } from '../support/runner/random.ts'
import { until, untilItMoves } from './watch.ts'

const quietCampaigns = 20
// The small batches of the projectors would only make each rebuild read for longer.
const rebuildSettings = { PLEDGEVIEW_BATCH_RECORDS_MAX: '2000' }

/** Campaigns without new events meanwhile keep their stamps. */
export async function rebuildUnderKills(stage: Stage): Promise<Figures> {
  const { settled, traffic, tables } = stage
  const quiet = Array.from({ length: quietCampaigns }, () => traffic.newPublicHistory())
  await traffic.say(quiet.map(({ id, states }) => ({ type: 'campaign', key: id, data: states[0] ?? null })))
  // What is said from now on must count as said afterwards, also if it is not folded yet when the stamps are read.
  await settled({ staysPaused: true })
  const progress = () =>
    new Map([...traffic.histories()].map(history => [history.id, saidOf(traffic, history).join()]))
  const saidBefore = progress()
  const before = await stamps(stage)
  traffic.resume()
  await rebuildThroughKill(stage)
  await untilItMoves(tables)
  await settled()
  const saidAfter = progress()
  const untouched = [...before].filter(([id]) => saidBefore.get(id) === saidAfter.get(id))
  expect(untouched.length).toBeGreaterThanOrEqual(quietCampaigns)
  const after = await stamps(stage)
  expect(untouched.map(([id]) => [id, after.get(id)])).toEqual(untouched)
  return {
    kills: 2,
    'campaigns of which nothing new was said, all with their stamps': untouched.length,
  }
}

/**
 * Kills both while the new tables are promoted, the moment at which most can go wrong: test/integration/generations has all others.
 * Then the rebuild ends, and the previous tables are dropped.
 */
async function rebuildThroughKill({ random, places, tables, environment }: Stage): Promise<void> {
  const settings = { ...environment, ...rebuildSettings }
  const log = { tables, base: defaultDatabases.base }
  const { child, started } = launchProcess(['rebuild', '--json'], settings, 'never said')
  started.catch(() => undefined)
  const exit = once(child, 'exit')
  await until(async () => {
    const isPromoting = (await latestRebuild(log))?.phase === 'promoting'
    return isPromoting || child.exitCode !== null
  }, 10)
  const place = pick(random('rebuild'), places)
  await place.kill()
  if (child.exitCode === null) {
    child.kill('SIGKILL')
    await exit
  }
  place.start()
  const left = (await latestRebuild(log))?.phase
  const commands = (workPhases as readonly unknown[]).includes(left) ? [[], ['drop']] : [['drop']]
  for (const args of commands) {
    const { code, stderr } = await runCli(['rebuild', ...args, '--json'], '', settings)
    expect(code, stderr).toBe(0)
  }
  await Promise.all(places.map(one => one.ready()))
}

async function stamps({ tables }: Stage): Promise<Map<string, string>> {
  const rows = await stampsOf({ tables, databases: defaultDatabases })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
