/** The bench's platform, made ready to be read: loaded, folded by the projector's own folder, and merged. */
import { setTimeout as delay } from 'node:timers/promises'
import { createFolder, type Folder } from '../../services/projector/folder.ts'
import { sleep } from '../../services/projector/sleep.ts'
import { readConfig } from '../../services/shared/config.ts'
import { migrate } from '../../services/shared/tables/migrate.ts'
import type { Databases, Tables } from '../../services/shared/tables/port.ts'
import { loadPlatform, type PlatformSize } from './platform.ts'

export interface FoldedPlatform {
  loadSeconds: number
  foldSeconds: number
  foldStatements: number
}

const mergeMsMax = 30_000

/** Migrates, loads and folds whole, with the projector's defaults. */
export async function foldPlatform(
  tables: Tables,
  databases: Databases,
  size: PlatformSize,
): Promise<FoldedPlatform> {
  await migrate(tables, databases)
  const loadSeconds = await secondsOf(() => loadPlatform(tables, databases, size))
  const folder = openPlatformFolder(tables, databases)
  await folder.takeOver()
  let foldStatements = 0
  const foldSeconds = await secondsOf(async () => {
    foldStatements = (await folder.fold())?.statements ?? 0
  })
  await mergesEnded(tables)
  return { loadSeconds, foldSeconds, foldStatements }
}

/** A folder with the projector's defaults, on tables that nobody else has folded a moment ago. */
export function openPlatformFolder(tables: Tables, databases: Databases): Folder {
  const config = readConfig({})
  return createFolder({
    tables,
    databases,
    holder: 'bench',
    settings: {
      horizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
      settleMs: 0,
      platformDigits: 2,
      campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
    },
    monotonicMs: () => performance.now(),
    sleep,
    random: Math.random,
  })
}

/** Waits until ClickHouse has merged what was loaded at once, as it would have been long ago; for a while at most. */
export async function mergesEnded({ rows }: Tables): Promise<void> {
  const deadline = performance.now() + mergeMsMax
  while (performance.now() < deadline) {
    const [row] = await rows<{ running: number }>({ query: 'SELECT count() AS running FROM system.merges' })
    if (row?.running === 0) return
    await delay(200)
  }
}

export async function secondsOf(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return (performance.now() - startedMs) / 1000
}
