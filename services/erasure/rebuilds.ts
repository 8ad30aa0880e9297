/** Purges what rebuilds have left: the tables from before the last one, and the examples of differences in its log. */

import { isWorking, latestRebuild, writeRebuild } from '../generations/rebuild-log.ts'
import type { Rebuilds } from '../generations/rebuilds.ts'
import { messageOf } from '../runtime/message-of.ts'
import type { Shard } from '../tables/port.ts'
import { type PurgedCopy, purged, unreached } from './report.ts'
import { deleteRows, type TablesPurge } from './tables.ts'

const previousTables = 'previous tables'
const rebuildLog = 'rebuild log'
// How the JSON of a rebuild with examples of differences looks.
const withExamples = `position(detail, '"examples":[{') > 0`

/**
 * Never throws. The previous tables are dropped, so there is no rollback afterwards. `shards`: those that have the rows of `whole`.
 * Default: it is one server.
 */
export async function purgeRebuilds(
  whole: Shard,
  rebuilds: Pick<Rebuilds, 'report' | 'drop'>,
  purge: TablesPurge,
  shards: readonly Shard[] = [whole],
): Promise<PurgedCopy[]> {
  try {
    const latest = await rebuilds.report()
    if (latest && isWorking(latest)) {
      const reason =
        'a rebuild is not finished: let it end or drop it (pledgeview rebuild drop), then run the purge again'
      return [unreached(previousTables, reason)]
    }
    const isKept = latest?.isPreviousKept ?? false
    if (isKept && !purge.isDry) await rebuilds.drop()
    const dropped = purge.isDry ? 'drops them: no rollback after that' : 'dropped: no rollback any more'
    return [purged(previousTables, isKept ? dropped : 'none are kept'), await purgeLog(whole, shards, purge)]
  } catch (error) {
    return [unreached(previousTables, messageOf(error))]
  }
}

/** The log shows old and new texts of campaigns that a rebuild has changed. */
async function purgeLog(
  { tables, databases }: Shard,
  shards: readonly Shard[],
  purge: TablesPurge,
): Promise<PurgedCopy> {
  const [found] = await tables.rows<{ rows: number }>({
    query: `SELECT countIf(${withExamples}) AS rows FROM ${databases.base}.generation_log`,
  })
  const rows = found?.rows ?? 0
  if (rows === 0) return purged(rebuildLog, 'no examples of differences')
  if (purge.isDry) return purged(rebuildLog, 'removes the examples of differences')
  const log = { tables, base: databases.base }
  const state = await latestRebuild(log)
  if (state?.detail.differences) {
    const differences = { ...state.detail.differences, examples: [] }
    await writeRebuild(log, { ...state, detail: { ...state.detail, differences } })
  }
  const done = purged(rebuildLog, 'examples of differences removed')
  let copy = done
  for (const { tables, databases } of shards) {
    const table = `${databases.base}.generation_log`
    const query = `ALTER TABLE ${table} DELETE WHERE kind = 'beat' AND ${withExamples} SETTINGS mutations_sync = 2`
    const remove = () => tables.run({ query })
    const ofShard = await deleteRows(tables, databases, { table: 'generation_log', remove }, purge, done)
    // What a shard could not remove yet is what is left.
    if (ofShard !== done) copy = ofShard
  }
  return copy
}
