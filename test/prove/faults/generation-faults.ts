/** Generations that come and go under traffic and readers: rebuilds that are killed together with a projector, and a roll back. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { latestRebuild, type Phase } from '../../../services/generations/rebuild-log.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { launchProcess, makeDataDirectory } from '../../support/deployment/service-process.ts'
import { intBetween, pick } from '../../support/runner/random.ts'
import type { Stage } from '../stage/stage.ts'
import { currentOf, until, untilReady } from '../stage/watch.ts'

// The promotion of a world takes a moment.
const lookMs = 10
// The small batches of the projectors would only make each rebuild read for longer.
const rebuildSettings = { PLEDGEVIEW_BATCH_RECORDS_MAX: '2000' }

/** The next generation is promoted, serves for a while, and the one before it is promoted again. */
export async function rollBack(stage: Stage): Promise<void> {
  for (const args of [[], ['rollback']]) {
    await promoted(stage, () => command(stage, ['rebuild', ...args]))
    await stage.untilItMoves()
    await stage.settled()
  }
  await command(stage, ['rebuild', 'drop'])
}

/**
 * The work makes another generation current. The watermark of the one before stands still, so one that is later tells which a process reads.
 * Nobody may see anything of it before the promotion begins.
 */
async function promoted(stage: Stage, work: () => Promise<unknown>): Promise<void> {
  let hasEnded = false
  const working = work().finally(() => {
    hasEnded = true
  })
  working.catch(() => {})
  await until(async () => hasEnded || (await phaseOf(stage)) === 'promoting', lookMs)
  await stage.recorder.disturbed('generation', () => working.then(stage.untilShown))
}

async function phaseOf({ tables }: Stage): Promise<Phase | undefined> {
  return (await latestRebuild({ tables, base: defaultDatabases.base }))?.phase
}

/**
 * Kills both while the new tables are promoted, the moment at which most can go wrong: test/integration/generations has all others.
 * Then the rebuild ends, and the previous tables are dropped.
 */
export async function rebuildThroughKill(stage: Stage): Promise<void> {
  await promoted(stage, () => promoteThroughKill(stage))
  await stage.settled()
  await command(stage, ['rebuild', 'drop'])
}

async function promoteThroughKill(stage: Stage, attempts = 3): Promise<void> {
  const { random, places, deployment } = stage
  const settings = { ...deployment.environment, ...rebuildSettings }
  const rebuild = launchProcess(['rebuild', '--json'], settings, 'never said')
  rebuild.started.catch(() => undefined)
  await until(async () => rebuild.hasEnded() || (await phaseOf(stage)) === 'promoting', lookMs)
  // Only what a kill leaves is tried again below. A failure of its own must be seen.
  if (rebuild.hasEnded() && (await rebuild.stop()) !== 0)
    throw new Error(`the rebuild failed by itself:\n${rebuild.output()}`)
  const place = pick(random('rebuild'), places)
  await Promise.all([rebuild.stop('SIGKILL'), place.kill()])
  place.start()
  await Promise.all(places.map(one => one.ready()))
  if ((await phaseOf(stage)) === 'promoting') await command(stage, ['rebuild'])
  else if (attempts === 1) throw new Error('no rebuild was killed while it promoted')
  else {
    // The kill came too late. It must not count as one that was survived.
    await command(stage, ['rebuild', 'drop'])
    return promoteThroughKill(stage, attempts - 1)
  }
  await stage.untilItMoves()
}

/** The tables go back to a backup that was made beside the traffic, as the guide does it (deploy/restore.md). Some worlds tell it by hand. */
export async function restoreBackup(stage: Stage): Promise<void> {
  const { tables, places, queries, recorder, traffic, random } = stage
  const names = Object.values(await currentOf(tables))
  const all = names.map(name => `DATABASE ${name}`).join(', ')
  const directory = makeDataDirectory()
  const file = `File('${directory.path}/night/')`
  async function restore(): Promise<void> {
    for (const place of [...places, ...queries]) expect(await place.stop()).toBe(0)
    for (const name of names) await tables.run({ query: `DROP DATABASE ${name} SYNC` })
    await tables.run({ query: `RESTORE ${all} FROM ${file}` })
    await traffic.pause()
    if (random('restored')() < 0.5) await command(stage, ['restored'])
    for (const place of places) place.start()
    await stage.untilProjected()
    for (const place of queries) place.start()
    await Promise.all(queries.map(untilReady))
    traffic.resume()
  }
  try {
    await tables.run({ query: `BACKUP ${all} TO ${file}` })
    await delay(intBetween(random('restore'), 2_000, 8_000))
    await stage.untilItMoves()
    // No query process answers.
    await recorder.disturbed('restore', () => recorder.disturbed('silence', restore))
  } finally {
    directory.remove()
  }
}

async function command({ deployment }: Stage, args: readonly string[]): Promise<void> {
  const { code, stderr } = await deployment.command([...args, '--json'], '', rebuildSettings)
  expect(code, stderr).toBe(0)
}
