/**
 * The projectors' positions, which stand with the data: a projector reads on from the position in the tables, whatever the consumer
 * group says. So new tables, another Kafka cluster and a recreated topic are the same case as a restart.
 *
 * A position is written after the rows of its batch and the batch log, and at most once a second: after a kill, the records of that second
 * are read again. A late writer cannot harm: in each era the highest position counts. A new era begins where the positions must go back:
 *
 * - The tables were restored from a backup. The event log remembers which watermark lists have shown (port.ts). If the tables are
 *   behind it, they went back. Before anything is read, positions of a new era are written. They begin a day before the backup, because
 *   a backup copies one table after the other. Everything is folded once. And what is read again is stamped anew up to
 *   the log's end of that moment, even if it comes out the same: a poller may have seen what the backup lacks.
 * - The log went back: it ends before the position, or has another record there. It is read from its start.
 *   So a position moves only once a record has been read: markers of transactions alone leave nothing to compare.
 *
 * Another generation is the same case as a restart: an assignment belongs to the generation under which its positions were found. Within a
 * second the projector drops what it has read and not written, and reads on from the positions of the generation that is current now.
 *
 * Each shard has its own positions, and the lowest counts. A group that was never used remembers nothing; then `pledgeview restored`
 * says that the tables went back.
 */
import {
  type LogState,
  type PartitionRange,
  type Position,
  partitionName,
  type Start,
} from '../../log/port.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import { presentOf } from '../../tables/generation-log.ts'
import type { Databases, Shard, Tables } from '../../tables/port.ts'
import { foldWholeStatement } from '../fold/fold-progress.ts'
import {
  readPositions,
  readUntilOfNew,
  type StoredPosition,
  type StoredPositions,
  startOfLog,
  writePositions,
} from './stored-positions.ts'

interface PositionsDependencies {
  tables: Pick<Tables, 'rows' | 'run'>
  databases: Databases
  /** The shards that each have positions. */
  shards: readonly Shard[]
  /** Unix ms. */
  now: () => number
  monotonicMs?: () => number
  warn: (message: string) => void
}

export type Positions = ReturnType<typeof createPositions>

/** A backup that is copied while projectors run has tables of different moments. */
const marginHours = 24
const storeEveryMs = 1_000

export function createPositions(dependencies: PositionsDependencies) {
  const { now, monotonicMs = () => performance.now(), warn } = dependencies
  let assignment = ''
  let sought: Databases | undefined
  let shards: readonly Shard[] = []
  let held = new Map<string, StoredPosition>()
  /** Of partitions that no longer exist. They are noted as read, too: otherwise the log would always seem to have been read last long ago. */
  let gone: StoredPosition[] = []
  /** Of those that are held, the ones that are not written yet. */
  let unwritten = new Set<StoredPosition>()
  let writtenAt = Number.NEGATIVE_INFINITY

  /** Writes what `store` has left. */
  async function storeRest(): Promise<void> {
    const rows = unwritten
    if (rows.size === 0) return
    await writePositions(shards, [...rows])
    for (const row of rows) unwritten.delete(row)
    writtenAt = monotonicMs()
  }

  const heldIn = (positions: readonly Position[]) =>
    positions.flatMap(position => {
      const row = held.get(partitionName(position))
      return row ? [{ row, position }] : []
    })

  /** Whether another generation is current by now. Then the log has to be read from its positions. */
  const areSuperseded = () => sought !== undefined && sought.ledger !== dependencies.databases.ledger

  async function look(state: LogState): Promise<Noticed & { databases: Databases; present: Shard[] }> {
    const databases = presentOf(dependencies.databases)
    const present = dependencies.shards.map(shard => ({ ...shard, databases: presentOf(shard.databases) }))
    try {
      const noticed = await noticeRestore({ ...dependencies, databases, shards: present }, state)
      return { databases, present, ...noticed }
    } catch (error) {
      if (databases.ledger === dependencies.databases.ledger) throw error
      // Its generation was dropped meanwhile.
      return look(state)
    }
  }

  return {
    async find(state: LogState): Promise<ReadonlyMap<string, Start>> {
      // From here on, what the last assignment has read is not stored.
      assignment = state.assignment
      const { databases, present, stored, restored } = await look(state)
      const fresh = readUntilOfNew(stored, now())
      const found = new Map(
        state.partitions.map((at): [string, StoredPosition] => {
          const row = (restored ?? stored.ofLog).get(partitionName(at))
          return [partitionName(at), row ?? startOfLog(state.log, at, fresh)]
        }),
      )
      // A reading that ends late does not replace that of a newer assignment.
      if (assignment === state.assignment) {
        held = found
        gone = [...stored.ofLog].flatMap(([name, row]) => (found.has(name) ? [] : row))
        unwritten = new Set()
        sought = databases
        shards = present
      }
      return new Map([...found].map(([name, { next, lastAt }]): [string, Start] => [name, { next, lastAt }]))
    },

    beginAnew({ topic, partition, low }: PartitionRange, reason: string) {
      const name = partitionName({ topic, partition })
      const row = held.get(name)
      if (!row) return
      warn(`${name}: ${reason}. It is another log, so it is read from its start`)
      held.set(name, { ...row, era: row.era + 1, next: low, lastAt: 0, againUntil: 0, lostWatermark: 0 })
    },

    /** Campaigns of a batch get a new stamp if theirs is before this, Unix ms; 0: they keep it. Ask before `store`. */
    restampBefore(of: string, positions: readonly Position[]): number {
      if (of !== assignment) return 0
      const again = heldIn(positions).filter(({ row }) => row.next < row.againUntil)
      return Math.max(0, ...again.map(({ row }) => row.lostWatermark))
    },

    /** Writes the positions of a batch to each shard, if it is time for it. Those of an assignment that is not the last one are left out. */
    async store(of: string, positions: readonly Position[]): Promise<void> {
      if (of !== assignment) return
      for (const { row, position } of heldIn(positions)) {
        const { next, lastAt = row.lastAt } = position
        if (position.lastAt === undefined && lastAt === 0) continue
        invariant('stored-positions', next >= row.next, () => ({ ...position, before: row.next }))
        const moved = { ...row, next, lastAt }
        held.set(partitionName(moved), moved)
        unwritten.delete(row)
        unwritten.add(moved)
      }
      if (monotonicMs() - writtenAt >= storeEveryMs) await storeRest()
    },

    storeRest,

    /**
     * Notes that everything that these partitions had at that time (Unix ms) is in the tables. The same holds for partitions that the log does
     * not have any more: they have nothing to read.
     */
    async noteRead(places: readonly string[], until: number): Promise<void> {
      const present = places.flatMap(place => held.get(place) ?? [])
      const rows = [...present, ...gone].map(row => ({ ...row, readUntil: until }))
      await writePositions(shards, rows)
      for (const row of rows) {
        const at = held.get(partitionName(row))
        if (at?.era === row.era) at.readUntil = until
      }
    },

    /**
     * Where a batch of this assignment is written: the generation in which its positions were found. `undefined`: the assignment has ended,
     * or another generation is current, so the batch is dropped.
     */
    databasesOf: (of: string) => (of === assignment && !areSuperseded() ? sought : undefined),
    areSuperseded,
  }
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

interface Noticed {
  stored: StoredPositions
  restored?: Map<string, StoredPosition>
}

/** The positions in the tables, and if the tables went back, those of a new era (`restored`), which are then written. */
export async function noticeRestore(
  dependencies: PositionsDependencies,
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

/**
 * Writes down that the tables went back: everything is folded once, and positions of a new era say what is read again. `watermark`: the
 * tables' own, which is the time of the backup. `lostWatermark`: no list has shown a later one. Both Unix ms. `acceptsLoss`: records that the
 * log has deleted are not needed. Repeating it is harmless.
 */
export async function beginAgain(
  dependencies: PositionsDependencies,
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
  { tables, databases, shards }: PositionsDependencies,
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
