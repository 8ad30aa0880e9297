/** A rebuild that is killed in every phase, alone or with a projector, or that continues while a projector is killed. */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, vi } from 'vitest'
import { latestRebuild, type WorkPhase, workPhases } from '../../../services/generations/rebuild-log.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { intBetween, pick, type Random } from '../random.ts'
import { launchProcess, runCli } from '../service-process.ts'
import type { Place } from './projectors.ts'

/** When it is killed: once it is in this phase or a later one. */
export type Moment = Exclude<WorkPhase, 'preparing'>

const victims = ['rebuild', 'projector', 'both'] as const

export interface RebuildKills {
  moments: readonly Moment[]
  /** Who dies. Default: another one each time. */
  victim?: (typeof victims)[number]
  random: Random
  places: readonly Place[]
  tables: Tables
  /** Of the command. */
  environment: Readonly<Record<string, string>>
}

const momentMsMax = 300_000

/**
 * Kills once in every phase. Then the rebuild ends, and the previous tables are dropped. If a rebuild ends without a kill, the
 * next phase belongs to a new one. Resolves with the victims and their phases.
 */
export async function rebuildThroughKills(kills: RebuildKills): Promise<string[]> {
  const { random, places, environment } = kills
  const deaths: string[] = []
  for (const moment of kills.moments) {
    const victim = kills.victim ?? pick(random, victims)
    const { child, output, started } = launchProcess(['rebuild', '--json'], environment, 'never said')
    started.catch(() => undefined)
    const exit = once(child, 'exit')
    const hasEnded = () => child.exitCode !== null
    await until(async () => hasEnded() || (await isAt(kills, moment)))
    await delay(intBetween(random, 0, 30))
    const place = pick(random, places)
    if (victim !== 'rebuild') await place.kill()
    // A rebuild that has already ended was faster than the kill.
    if (victim !== 'projector' && !hasEnded()) {
      child.kill('SIGKILL')
      await exit
    }
    if (victim !== 'rebuild') place.start()
    if (victim === 'projector') await until(hasEnded)
    deaths.push(`${victim} while ${moment}`)
    if (child.exitCode === 0) await dropPrevious(environment)
    else expect(child.signalCode, output().slice(-2_000)).toBe('SIGKILL')
  }
  const last = await latestRebuild({ tables: kills.tables, base: defaultDatabases.base })
  if (last && last.phase !== 'dropped') {
    const { code, stderr } = await runCli(['rebuild', '--json'], '', environment)
    expect(code, stderr).toBe(0)
    await dropPrevious(environment)
  }
  await Promise.all(places.map(place => place.ready()))
  return deaths
}

async function isAt({ tables }: RebuildKills, moment: Moment): Promise<boolean> {
  const state = await latestRebuild({ tables, base: defaultDatabases.base })
  return (workPhases as readonly string[]).indexOf(state?.phase ?? '') >= workPhases.indexOf(moment)
}

async function dropPrevious(environment: Readonly<Record<string, string>>): Promise<void> {
  const { code, stderr } = await runCli(['rebuild', 'drop', '--json'], '', environment)
  expect(code, stderr).toBe(0)
}

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  await vi.waitFor(async () => expect(await holds()).toBe(true), { timeout: momentMsMax, interval: 20 })
}
