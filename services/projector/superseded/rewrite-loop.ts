/**
 * Removes superseded rows from disk within a bound, while inserts go on. Runs in the process that folds, once per
 * shard.
 *
 * - Every `checkMs` it looks for withdrawn content: entities that were deleted, or are no longer public or counted,
 *   and still have their content in superseded rows. If there is some, the table is rewritten. So the cost is bounded:
 *   one look, and at most one rewrite of each table in that time.
 * - Other superseded rows, for example an earlier text of a campaign, are removed by a rewrite that is due when the
 *   oldest part is older than `supersededMsMax`, or when this process has not rewritten the table for so long. It is
 *   also due when very many rows are new, because looking at them would cost as much.
 * - At each look it also removes the history of deleted campaigns (shared/tables/history.ts).
 *
 * How it fails: it reports the failure and tries again at the next look. It never stops the projector.
 */
import { messageOf } from '../../runtime/message-of.ts'
import type { Sleep } from '../../runtime/sleep.ts'
import { findDeletedHistory, removeHistory } from '../../tables/history.ts'
import type { Shard } from '../../tables/port.ts'
import {
  countWithdrawn,
  readPartsStates,
  rewriteParts,
  type VersionedTable,
  versionedTableNames,
} from '../../tables/superseded.ts'

export interface RewriteLoopDependencies {
  shard: Shard
  leads: () => boolean
  /** How often to look for withdrawn content, ms. */
  checkMs: number
  /** How long other superseded rows may stay, ms. */
  supersededMsMax: number
  onRewrite: (rewrite: Rewrite) => void
  onFailure: (error: Error) => void
  monotonicMs: () => number
  sleep: Sleep
}

export interface Rewrite {
  table: VersionedTable
  /** Entities whose withdrawn content was removed; `undefined` if they were not counted. */
  withdrawn: number | undefined
  elapsedMs: number
}

// A process that begins to lead looks soon: the one before may have ended just before its look.
const firstCheckMsMax = 10_000
const idleMs = 500

/** Runs until the signal aborts. Never throws. */
export async function runRewriteLoop(loop: RewriteLoopDependencies, signal: AbortSignal): Promise<void> {
  const { checkMs, monotonicMs, sleep } = loop
  const rewrittenAt = new Map<VersionedTable, number>()
  let checkAt: number | undefined
  while (!signal.aborted) {
    if (!loop.leads()) {
      checkAt = undefined
      rewrittenAt.clear()
    } else if (checkAt === undefined) {
      checkAt = monotonicMs() + Math.min(checkMs, firstCheckMsMax)
      for (const table of versionedTableNames) rewrittenAt.set(table, monotonicMs())
    } else if (monotonicMs() >= checkAt) {
      for (const table of versionedTableNames) await check(loop, table, rewrittenAt, signal)
      await removeDeleted(loop, signal)
      checkAt = monotonicMs() + checkMs
    }
    await sleep(idleMs, signal)
  }
}

async function removeDeleted(
  { shard, monotonicMs, onRewrite, onFailure }: RewriteLoopDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { tables, databases } = shard
  if (signal.aborted) return
  try {
    const startedAt = monotonicMs()
    const ids = await findDeletedHistory(tables, databases, { signal })
    if (ids.length === 0) return
    await removeHistory(tables, databases, ids)
    onRewrite({ table: 'campaign_days', withdrawn: ids.length, elapsedMs: monotonicMs() - startedAt })
  } catch (error) {
    if (!signal.aborted) onFailure(error instanceof Error ? error : new Error(messageOf(error)))
  }
}

async function check(
  loop: RewriteLoopDependencies,
  table: VersionedTable,
  rewrittenAt: Map<VersionedTable, number>,
  signal: AbortSignal,
): Promise<void> {
  const { checkMs, supersededMsMax, monotonicMs } = loop
  const { tables, databases } = loop.shard
  if (signal.aborted) return
  try {
    const state = (await readPartsStates(tables, databases, { signal })).get(table)
    // Within one part, no row is superseded.
    if (!state || state.parts < 2) return
    const startedAt = monotonicMs()
    const isOverdue =
      state.oldestMs > supersededMsMax || startedAt - (rewrittenAt.get(table) ?? startedAt) > supersededMsMax
    const withdrawn = isOverdue
      ? undefined
      : await countWithdrawn(tables, databases, table, state, { signal })
    if (withdrawn === 0) return
    await rewriteParts(tables, databases, table, { ...loop, msMax: checkMs, signal })
    rewrittenAt.set(table, monotonicMs())
    loop.onRewrite({ table, withdrawn, elapsedMs: monotonicMs() - startedAt })
  } catch (error) {
    if (!signal.aborted) loop.onFailure(error instanceof Error ? error : new Error(messageOf(error)))
  }
}
