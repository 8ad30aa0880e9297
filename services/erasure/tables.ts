/**
 * Purges ClickHouse's tables: merges the parts that hold superseded rows, and waits until the files of the old parts
 * are gone.
 *
 * By default ClickHouse keeps the files of merged parts for eight minutes, because it does not fsync merges. From when a table is
 * purged until the end of the purge, its merges are fsynced and its old files are removed at once. If the purge is killed, the
 * table keeps these two settings, which is safe; the next purge resets those of all tables at its end.
 */

import { readQuarantine } from '../projector/status.ts'
import { untilFound } from '../runtime/async/sleep.ts'
import { messageOf } from '../runtime/message-of.ts'
import { counted } from '../runtime/progress.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { qualified } from '../tables/generation-log.ts'
import type { Shard } from '../tables/port.ts'
import { oldPartsMs, readParts, rewriteParts, versionedTables } from '../tables/superseded.ts'
import { leftOver, type PurgedCopy, purged, tried, unreached } from './report.ts'
import { purgeDeleted, purgeRejects } from './rows.ts'

export interface TablesPurge extends Pick<Runtime, 'now' | 'monotonicMs' | 'sleep'> {
  isDry: boolean
  /** Whether all rejects are removed, and not only those of deleted entities. */
  removesRejects: boolean
  /** How long one table may take, ms. */
  msMax: number
}

const quickRemoval = ['old_parts_lifetime = 0', 'min_rows_to_fsync_after_merge = 1'] as const
const purgedTables = [...versionedTables, 'api_key_requests', 'api_key_usage', 'rejects'] as const
const removalMsMax = 60_000
const lookMs = 250

/**
 * One entry for each table. Never throws: a table that could not be purged says why. On a cluster `wholeBase` is the base database over all
 * shards.
 */
export async function purgeTables(
  shard: Shard,
  purge: TablesPurge,
  { prefix = '', wholeBase = shard.databases.base } = {},
): Promise<PurgedCopy[]> {
  const works = {
    tables: mergeTables,
    'campaigns in quarantine': purgeQuarantine,
    'history and usage': purgeDeleted,
    rejects: purgeRejects,
    'settings of the tables': resetSettings,
    'detached parts': detachedParts,
  }
  const copies: PurgedCopy[] = []
  for (const [copy, work] of Object.entries(works)) {
    const done = await work(shard, purge, wholeBase).catch(error => [unreached(copy, messageOf(error))])
    copies.push(...done)
  }
  return copies.map(entry => ({ ...entry, copy: `${prefix}${entry.copy}` }))
}

/** One table after the other, so that the disk needs room for the largest only. */
async function mergeTables(shard: Shard, purge: TablesPurge): Promise<PurgedCopy[]> {
  const { tables, databases } = shard
  const copies: PurgedCopy[] = []
  for (const table of versionedTables) {
    const copy = `table ${table}`
    const work = async () => {
      const parts = await readParts(tables, databases, table)
      const active = parts.filter(part => part.active === 1).length
      const verb = purge.isDry ? 'merges' : 'merged'
      const done = purged(copy, active < 2 ? 'nothing to merge' : `${verb} ${active} parts`)
      const remove = () => rewriteParts(tables, databases, table, purge)
      return purge.isDry ? done : deleteRows(shard, { table, remove }, purge, done)
    }
    copies.push(await tried(copy, work))
  }
  return copies
}

/** Deletes rows, and waits until the files that had them are gone. Returns `done`, with what is left. */
export async function deleteRows(
  shard: Shard,
  { table, remove }: { table: string; remove: () => Promise<void> },
  purge: TablesPurge,
  done: PurgedCopy,
): Promise<PurgedCopy> {
  const { tables, databases } = shard
  const place = qualified(table, databases)
  await tables.run({ query: `ALTER TABLE ${place} MODIFY SETTING ${quickRemoval.join(', ')}` })
  const before = await readParts(tables, databases, table)
  await remove()
  const after = await readParts(tables, databases, table)
  const active = new Set(after.filter(part => part.active).map(({ name }) => name))
  const old = new Set(before.map(({ name }) => name)).difference(active)
  // Whether none of the old parts has files any more, within a minute.
  const look = async () => {
    const parts = await readParts(tables, databases, table)
    if (!parts.some(({ name }) => old.has(name))) return true
    // Wakes ClickHouse's clean-up, which sleeps for up to five minutes. A server may refuse this to the user.
    await tables.run({ query: `SYSTEM START CLEANUP ${place}` }).catch(() => undefined)
    return undefined
  }
  const isGone = await untilFound(removalMsMax, look, { ...purge, everyMs: lookMs })
  const left = 'files of old parts, which a query still reads'
  return isGone ? done : leftOver(done.copy, done.done, left, purge.now() + oldPartsMs)
}

async function resetSettings({ tables, databases }: Shard, { isDry }: TablesPurge): Promise<PurgedCopy[]> {
  const settings = quickRemoval.map(setting => setting.split(' ')[0]).join(', ')
  for (const name of isDry ? [] : purgedTables)
    await tables.run({ query: `ALTER TABLE ${qualified(name, databases)} RESET SETTING ${settings}` })
  return []
}

/** Parts that ClickHouse has set aside are never merged, and nothing removes them. */
async function detachedParts({ tables, databases }: Shard): Promise<PurgedCopy[]> {
  const { base, ledger, read } = databases
  const [found] = await tables.rows<{ parts: number }>({
    query: 'SELECT count() AS parts FROM system.detached_parts WHERE database IN {names:Array(String)}',
    query_params: { names: [base, ledger, read] },
  })
  const parts = found?.parts ?? 0
  if (parts === 0) return []
  const reason = `${counted(parts, 'part')} that ClickHouse has set aside (system.detached_parts): look at them, and delete them`
  return [unreached('detached parts', reason)]
}

/** What campaigns in quarantine last were is shown until they can be folded. No entry if no campaign is in quarantine. */
async function purgeQuarantine(shard: Shard): Promise<PurgedCopy[]> {
  const campaigns = await readQuarantine(shard)
  const reason = 'it is in quarantine: what it last showed stays visible until it can be folded'
  const left =
    'what changed since its last fold: it is in quarantine, so run the purge again after some minutes'
  return campaigns.map(({ campaign_id, failures }) => {
    const copy = `campaign ${campaign_id}`
    return failures > 0 ? unreached(copy, reason) : leftOver(copy, 'nothing', left, null)
  })
}
