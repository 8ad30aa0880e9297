/**
 * Notices that the tables were restored from a backup, so that what they lack is read again.
 *
 * The event log remembers which watermark lists have shown (port.ts). If the tables are behind it, they went back. A group that was never used
 * remembers nothing: then an operator runs `pledgeview restored`. Before anything is read, positions of a new era are written. They begin a
 * day before the backup, because a backup copies one table after the other. Everything is folded once. What is read again, up to the log's
 * end of that moment, gets a new stamp, even if it comes out the same: a poller may have seen what the backup lacks.
 */
import { type LogState, partitionName } from '../../log/port.ts'
import type { Databases, Shard, Tables } from '../../tables/port.ts'
import { foldWholeStatement, readPending } from '../fold/fold-progress.ts'
import {
  type Noticed,
  type PositionsPlace,
  readPositions,
  readUntilOfNew,
  type StoredPosition,
  type StoredPositions,
  startOfLog,
  writePositions,
} from './positions.ts'

type RestoreDependencies = PositionsPlace & { tables: Pick<Tables, 'rows' | 'run'> }

/** A backup that is copied while projectors run has tables of different moments. */
const marginHours = 24

/** The positions in the tables, and if the tables went back, those of a new era (`restored`), which are then written. */
export async function noticeRestore(
  dependencies: RestoreDependencies,
  state: Pick<LogState, 'log' | 'partitions' | 'remembered'>,
): Promise<Noticed> {
  const { shown, watermark: lostWatermark } = state.remembered
  // The watermark comes first: another projector may begin again and write a high one while the positions are read.
  const watermark = await readTablesWatermark(dependencies.tables, dependencies.databases)
  const stored = await readPositions(dependencies.shards, state.log)
  // Empty tables are filled from the start of the log. No stamp of theirs is below the remembered watermark.
  if (shown === 0 || stored.readUntil.size === 0) return { stored }
  const known = Math.max(0, ...[...stored.ofLog.values()].map(row => row.lostWatermark))
  if (watermark >= shown || known >= shown) return { stored }
  return { stored, restored: await beginAgain(dependencies, state, { stored, watermark, lostWatermark }) }
}

/** Whether these tables went back, and do not show everything yet that is read again. */
export async function isBeingRestored({ tables, databases }: Shard, log: string): Promise<boolean> {
  const { ofLog } = await readPositions([{ tables, databases }], log)
  if ([...ofLog.values()].some(({ next, againUntil }) => next < againUntil)) return true
  return Boolean((await readPending(tables, databases))?.isAgain)
}

/** The lowest of all shards, Unix ms; 0 if none was written. */
export async function readTablesWatermark(
  tables: Pick<Tables, 'rows'>,
  { read }: Databases,
): Promise<number> {
  const [row] = await tables.rows<{ watermark: number }>({
    query: `SELECT toUnixTimestamp64Milli(reached) AS watermark FROM ${read}.watermark`,
  })
  return row?.watermark ?? 0
}

/**
 * Writes down that the tables went back: everything is folded once, and positions of a new era say what is read again. `watermark`: the
 * tables' own, which is the time of the backup. `lostWatermark`: no list has shown a later one. Both Unix ms. `acceptsLoss`: records that the
 * log has deleted are not needed. Repeating it is harmless.
 */
export async function beginAgain(
  dependencies: RestoreDependencies,
  state: Pick<LogState, 'log' | 'partitions'>,
  {
    stored,
    watermark,
    lostWatermark,
    acceptsLoss = false,
  }: { stored: StoredPositions; watermark: number; lostWatermark: number; acceptsLoss?: boolean },
): Promise<Map<string, StoredPosition>> {
  const { tables, databases, shards, now, warn } = dependencies
  const fresh = readUntilOfNew(stored, now())
  const certain = await readCertain(dependencies, state.log, watermark)
  const rows = state.partitions.map(at => {
    const name = partitionName(at)
    const row = stored.ofLog.get(name) ?? startOfLog(state.log, at, fresh)
    const back = Math.max(at.low, certain.get(name) ?? 0)
    // What the tables lack and the log has deleted is an error for the reader, unless an operator accepts that.
    const next = acceptsLoss ? Math.max(at.low, Math.min(row.next, back)) : Math.min(row.next, back)
    return { ...row, era: row.era + 1, next, lastAt: 0, againUntil: at.end, lostWatermark }
  })
  await tables.run(foldWholeStatement(databases, `restored-${lostWatermark}`))
  await writePositions(shards, rows)
  const times = [lostWatermark, watermark].map(ms => new Date(ms).toISOString())
  warn(
    `the tables went back: lists have shown changes up to ${times[0]}, and these tables end at ${times[1]}. The log is read again from ` +
      `${marginHours} hours before, and what it changes gets new stamps. A rebuild that is promoted before that is done gives every campaign a new stamp`,
  )
  return new Map(rows.map(row => [partitionName(row), row]))
}

/**
 * What was read a day before this time (Unix ms), by partition. Batches and positions are written after their rows are on every shard, so
 * those of any shard count. The batch log has a month. If these tables know that the log of a partition was replaced, nothing of it is certain:
 * offsets of the old log say nothing about the new one.
 */
async function readCertain(
  { tables, databases, shards }: RestoreDependencies,
  log: string,
  until: number,
): Promise<Map<string, number>> {
  const before = `fromUnixTimestamp64Milli({until:Int64}, 'UTC') - INTERVAL ${marginHours} HOUR`
  const query_params = { until: Math.round(until), log }
  const ofShards = shards.map(shard =>
    shard.tables.rows<{ place: string; reached: number; wasReplaced: boolean }>({
      query: `SELECT concat(topic, '/', toString(partition)) AS place, maxIf(next, written_at < ${before}) AS reached,
                toBool(max(era > 0 AND toUnixTimestamp64Milli(lost_watermark) = 0)) AS wasReplaced
              FROM ${shard.databases.ledger}.positions WHERE log = {log:String} GROUP BY place`,
      query_params,
    }),
  )
  const ofBatches = tables.rows<{ place: string; reached: number; wasReplaced?: boolean }>({
    query: `SELECT concat(at.1, '/', toString(at.2)) AS place, max(at.3) AS reached
            FROM ${databases.ledger}.batch_log ARRAY JOIN positions AS at
            WHERE log = {log:String} AND appended_at < ${before} GROUP BY place`,
    query_params,
  })
  const found = (await Promise.all([ofBatches, ...ofShards])).flat()
  const certain = new Map<string, number>()
  for (const { place, reached } of found) certain.set(place, Math.max(reached, certain.get(place) ?? 0))
  for (const { place, wasReplaced } of found) if (wasReplaced) certain.delete(place)
  return certain
}
