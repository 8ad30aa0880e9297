/** Generations that come and go under traffic and readers: rebuilds that are killed together with a projector, and a roll back. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { latestRebuild, workPhases } from '../../../services/generations/rebuild-log.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { launchProcess, runCli } from '../../support/deployment/service-process.ts'
import { intBetween, pick } from '../../support/runner/random.ts'
import type { Stage } from '../stage/stage.ts'
import { currentOf, until, untilItMoves, untilReady } from '../stage/watch.ts'

// The small batches of the projectors would only make each rebuild read for longer.
const rebuildSettings = { PLEDGEVIEW_BATCH_RECORDS_MAX: '2000' }

/** The next generation is promoted, serves for a while, and the one before it is promoted again. */
export async function rollBack(stage: Stage): Promise<void> {
  for (const args of [[], ['rollback']]) {
    await promoted(stage, () => rebuild(stage, args))
    await untilItMoves(stage.tables)
    await stage.settled()
  }
  await rebuild(stage, ['drop'])
}

/** The work makes another generation current. The watermark of the one before stands still, so one that is later tells which a process reads. */
function promoted(stage: Stage, work: () => Promise<unknown>): Promise<void> {
  return stage.recorder.disturbed('generation', async () => {
    await work()
    const promotedAt = Date.now()
    await stage.untilBoth(
      '/projects?limit=1',
      headers => Date.parse(headers['x-data-as-of'] ?? '') > promotedAt,
    )
  })
}

/**
 * Kills both while the new tables are promoted, the moment at which most can go wrong: test/integration/generations has all others.
 * Then the rebuild ends, and the previous tables are dropped.
 */
export async function rebuildThroughKill(stage: Stage): Promise<void> {
  await promoted(stage, () => promoteThroughKill(stage))
  await stage.settled()
  await rebuild(stage, ['drop'])
}

async function promoteThroughKill(stage: Stage): Promise<void> {
  const { random, places, tables, environment } = stage
  const log = { tables, base: defaultDatabases.base }
  const { child, started } = launchProcess(
    ['rebuild', '--json'],
    { ...environment, ...rebuildSettings },
    'never said',
  )
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
  if ((workPhases as readonly unknown[]).includes(left)) await rebuild(stage, [])
  await Promise.all(places.map(one => one.ready()))
  await untilItMoves(tables)
}

/** The tables go back to a backup that was made beside the traffic, as the guide does it (deploy/restore.md). Some worlds tell it by hand. */
export async function restoreBackup(stage: Stage): Promise<void> {
  const { tables, places, queries, recorder, traffic, random, environment } = stage
  const names = Object.values(await currentOf(tables))
  const all = names.map(name => `DATABASE ${name}`).join(', ')
  const directory = mkdtempSync(join(tmpdir(), 'pledgeview-prove-backup-'))
  const file = `File('${directory}/night/')`
  try {
    await tables.run({ query: `BACKUP ${all} TO ${file}` })
    await delay(intBetween(random('restore'), 2_000, 8_000))
    await untilItMoves(tables)
    await recorder.disturbed('restore', () =>
      away(async () => {
        for (const place of [...places, ...queries]) expect(await place.stop()).toBe(0)
        for (const name of names) await tables.run({ query: `DROP DATABASE ${name} SYNC` })
        await tables.run({ query: `RESTORE ${all} FROM ${file}` })
        await traffic.pause()
        if (random('restored')() < 0.5) {
          const { code, stderr } = await runCli(['restored', '--json'], '', environment)
          expect(code, stderr).toBe(0)
        }
        for (const place of places) place.start()
        await stage.untilProjected()
        for (const place of queries) place.start()
        await Promise.all(queries.map(untilReady))
        traffic.resume()
      }),
    )
    await untilItMoves(tables)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }

  /** No query process answers. */
  function away(work: () => Promise<void>): Promise<void> {
    const silent = [...queries.keys()].reduce(
      (inner, process) => () => recorder.disturbed('silence', inner, process),
      work,
    )
    return silent()
  }
}

async function rebuild({ environment }: Stage, args: readonly string[]): Promise<void> {
  const { code, stderr } = await runCli(['rebuild', ...args, '--json'], '', {
    ...environment,
    ...rebuildSettings,
  })
  expect(code, stderr).toBe(0)
}
