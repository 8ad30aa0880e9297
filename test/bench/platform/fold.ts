/** Makes the bench's platform ready to be read: loads it, folds it with the projector's fold worker, and merges it. */
import { setTimeout as delay } from 'node:timers/promises'
import { createFoldWorker, type FoldWorker } from '../../../services/projector/fold/fold-worker.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import type { Databases, Statement, Tables } from '../../../services/tables/port.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { definerUser } from '../../../services/tables/schema/roles.ts'
import { loadPlatform, type PlatformSize } from './platform.ts'

export interface FoldedPlatform {
  foldSeconds: number
  foldStatements: number
}

const holdsMsMax = 240_000
const foldMs = 1_000

/** Migrates, loads and folds everything, with the projector's defaults. */
export async function foldPlatform(
  tables: Tables,
  databases: Databases,
  size: PlatformSize,
): Promise<FoldedPlatform> {
  // As `npm start` has them: the views read as a user of their own.
  await migrate(tables, databases, { viewsDefiner: definerUser })
  await loadPlatform(tables, databases, size)
  const foldWorker = openPlatformFoldWorker(tables, databases)
  await foldWorker.acquireLeadership()
  const report = await foldWorker.fold()
  if (!report) throw new Error('nothing was folded')
  await mergesEnded(tables)
  return { foldSeconds: report.elapsedMs / 1000, foldStatements: report.statements }
}

/**
 * Folds what there is every second until the process ends, as the projector does. So the watermark of lists moves on: if it
 * stood still, each refresh of a list index would find the changes of the last fold again. Resolves once lists have all changes
 * so far: in a platform that grew over time, they were not all made a few seconds ago. Throws if that takes too long.
 */
export async function keepFolding(tables: Tables, databases: Databases): Promise<void> {
  const worker = openPlatformFoldWorker(tables, databases)
  await worker.acquireLeadership()
  setInterval(() => worker.fold().catch(() => undefined), foldMs).unref()
  await untilHolds(tables, {
    query: `SELECT (SELECT reached FROM ${databases.read}.watermark) > max(updated_at) AS holds
            FROM ${databases.read}.campaigns`,
  })
}

/** Asks until the column `holds` of the answer is not 0. Throws after four minutes. */
export async function untilHolds(tables: Pick<Tables, 'rows'>, statement: Statement): Promise<void> {
  const deadline = performance.now() + holdsMsMax
  for (;;) {
    const [row] = await tables.rows<{ holds: number }>(statement)
    if (row?.holds) return
    if (performance.now() > deadline) throw new Error(`it does not become true: ${statement.query}`)
    await delay(200)
  }
}

/** A fold worker with the projector's defaults. No other process folds these tables. */
export function openPlatformFoldWorker(tables: Tables, databases: Databases): FoldWorker {
  return createFoldWorker({
    tables,
    databases,
    holder: 'bench',
    config: readConfig({}),
    untilNoneRuns: async () => {},
    monotonicMs: () => performance.now(),
    sleep,
    random: Math.random,
  })
}

/** Waits until ClickHouse has merged the bulk load, as in a platform that grew over time. */
export async function mergesEnded(tables: Tables): Promise<void> {
  await untilHolds(tables, { query: 'SELECT count() = 0 AS holds FROM system.merges' })
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return (performance.now() - startedMs) / 1000
}
