/**
 * Removes superseded rows from disk within `msMax`, although events keep coming. Runs in the process that folds, once per shard.
 *
 * A table is rewritten when its oldest part is older than `msMax`, or when this process has not rewritten it for `msMax`. The history of
 * deleted campaigns is removed as often.
 *
 * How it fails: it reports the failure and tries again at the next look. It never stops the projector.
 */
import { messageOf } from '../runtime/message-of.ts'
import { findDeletedDays, removeRows } from '../tables/deleted-rows.ts'
import type { Shard } from '../tables/port.ts'
import { readPartsStates, rewriteParts } from '../tables/superseded.ts'
import type { ProjectorServiceDependencies } from './service.ts'

const lookMsMax = 60_000

/** Runs until the signal aborts. Never throws. */
export async function runRewriteLoop(
  shard: Shard,
  { reader, config, metrics, logger, monotonicMs, sleep }: ProjectorServiceDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { tables, databases } = shard
  const msMax = config.PLEDGEVIEW_SUPERSEDED_MS_MAX
  const lookMs = Math.min(lookMsMax, msMax / 4)
  const doneAt = new Map<string, number>()
  while (!signal.aborted) {
    await sleep(lookMs, signal)
    if (!reader.leads()) doneAt.clear()
    else {
      await attempt(rewriteTables)
      await attempt(removeDeleted)
    }
  }

  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      if (!signal.aborted) await work()
    } catch (error) {
      if (signal.aborted) return
      metrics.retries.inc({ stage: 'rewrite' })
      const found = { error: messageOf(error) }
      logger.warn(found, 'superseded rows could not be removed from disk yet; trying again later')
    }
  }

  async function rewriteTables(): Promise<void> {
    for (const [table, { parts, oldestMs }] of await readPartsStates(tables, databases, { signal })) {
      const since = doneAt.get(table) ?? monotonicMs()
      doneAt.set(table, since)
      // Within one part, no row is superseded.
      if (parts < 2 || (oldestMs < msMax && monotonicMs() - since < msMax)) continue
      const rewrite = () => rewriteParts(tables, databases, table, { msMax, monotonicMs, sleep, signal })
      await attempt(() => done(table, rewrite))
    }
  }

  async function removeDeleted(): Promise<void> {
    const what = 'the history of deleted campaigns'
    if (monotonicMs() - (doneAt.get(what) ?? Number.NEGATIVE_INFINITY) < msMax) return
    const ids = await findDeletedDays(tables, databases, { signal })
    if (ids.length > 0) await done(what, () => removeRows(shard, 'campaign_days', ids))
    else doneAt.set(what, monotonicMs())
  }

  async function done(what: string, work: () => Promise<void>): Promise<void> {
    const startedAt = monotonicMs()
    await work()
    doneAt.set(what, monotonicMs())
    logger.info({ what, elapsedMs: monotonicMs() - startedAt }, 'superseded rows were removed from disk')
  }
}
