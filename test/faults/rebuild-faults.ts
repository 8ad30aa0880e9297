/** A rebuild under traffic and readers, killed with and without the projectors, in every phase. */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { intBetween, pick } from '../../services/demo/random.ts'
import { isHold } from '../../services/projector/fold-hold.ts'
import { latestRebuild, workPhases } from '../../services/rebuild/rebuild-log.ts'
import { defaultDatabases } from '../../services/shared/tables/port.ts'
import type { Figures, Stage } from '../support/faults/stage.ts'
import { saidOf } from '../support/faults/traffic.ts'
import { column } from '../support/fold-records.ts'
import { launchProcess, runCli } from '../support/service-process.ts'
import { until, untilItMoves } from './watch.ts'

const { model, views } = defaultDatabases
const endMsMax = 120_000
const quietCampaigns = 20

/** When a rebuild is killed: once it is in this phase or further, or, `holding`, once nobody else may fold. */
const moments = ['reading log', 'catching up', 'holding', 'exchanging', 'finishing'] as const
type Moment = (typeof moments)[number]

/** kill -9 of the rebuild, of a projector, or of both, until it has been killed at every moment; then it ends. */
export async function rebuildUnderKills(stage: Stage): Promise<Figures> {
  const { random, places, settled, traffic, tables } = stage
  const next = random('rebuild')
  // Of these nothing new is said from now on.
  const quiet = Array.from({ length: quietCampaigns }, () => traffic.newPublicHistory())
  await traffic.say(quiet.map(({ id, states }) => ({ type: 'campaign', key: id, data: states[0] ?? null })))
  await settled()
  const progress = () =>
    new Map([...traffic.histories()].map(history => [history.id, saidOf(traffic, history).join()]))
  const saidBefore = progress()
  const before = await stamps(stage)
  const kills: Record<string, number> = { rebuild: 0, projector: 0, both: 0 }
  for (const moment of moments) {
    const victim = pick(next, ['rebuild', 'projector', 'both'] as const)
    const rebuild = launchProcess(['rebuild', '--json'], stage.environment, 'never said')
    rebuild.started.catch(() => undefined)
    const exit = once(rebuild.child, 'exit')
    const hasEnded = () => rebuild.child.exitCode !== null
    await until(async () => hasEnded() || (await isAt(stage, moment)))
    await delay(intBetween(next, 0, 30))
    console.log(`kill of ${victim} while ${moment}`)
    const place = pick(next, places)
    if (victim !== 'rebuild') await place.kill()
    // One that has ended was quicker than the kill.
    if (victim !== 'projector' && !hasEnded()) {
      rebuild.child.kill('SIGKILL')
      await exit
    }
    if (victim !== 'rebuild') place.start()
    if (victim === 'projector') await Promise.race([exit, delay(endMsMax)])
    kills[victim] = (kills[victim] ?? 0) + 1
    if (rebuild.child.exitCode === 0) await dropPrevious(stage)
    else expect(rebuild.child.signalCode, rebuild.output().slice(-2_000)).toBe('SIGKILL')
  }
  const last = await latestRebuild(tables, defaultDatabases)
  if (last && last.phase !== 'dropped') {
    const { code, stderr } = await runCli(['rebuild', '--json'], '', stage.environment)
    expect(code, stderr).toBe(0)
    await dropPrevious(stage)
  }
  await Promise.all(places.map(place => place.ready()))
  await untilItMoves(tables)
  await settled()
  const saidAfter = progress()
  const untouched = [...before].filter(([id]) => saidBefore.get(id) === saidAfter.get(id))
  expect(untouched.length).toBeGreaterThanOrEqual(quietCampaigns)
  const after = await stamps(stage)
  expect(untouched.map(([id]) => [id, after.get(id)])).toEqual(untouched)
  return {
    ...Object.fromEntries(Object.entries(kills).map(([victim, count]) => [`kills of ${victim}`, count])),
    'campaigns that nothing was said of, all with their stamps': untouched.length,
  }
}

async function isAt({ tables }: Stage, moment: Moment): Promise<boolean> {
  const state = await latestRebuild(tables, defaultDatabases)
  if (!state) return false
  if (moment === 'holding') {
    const [holder] = await column(
      tables,
      `SELECT holder AS value FROM ${model}.fold_epochs ORDER BY epoch DESC LIMIT 1`,
    )
    return isHold(String(holder))
  }
  return (workPhases as readonly string[]).indexOf(state.phase) >= workPhases.indexOf(moment)
}

async function dropPrevious({ environment }: Stage): Promise<void> {
  const { code, stderr } = await runCli(['rebuild', 'drop', '--json'], '', environment)
  expect(code, stderr).toBe(0)
}

async function stamps({ tables }: Stage): Promise<Map<string, string>> {
  const rows = await tables.rows<{ id: string; at: string }>({
    query: `SELECT campaign_id AS id, toString(updated_at) AS at FROM ${views}.campaigns`,
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
