/**
 * The projectors' positions, which stand with the data: a projector reads on from the position in the tables, whatever the consumer
 * group says. So new tables, another Kafka cluster and a recreated topic are the same case as a restart.
 *
 * A position is written after the rows of its batch and the batch log, and at most once a second: after a kill, the records of that second
 * are read again. A late writer cannot harm: in each era the highest position counts. A new era begins where the positions must go back:
 *
 * - The tables were restored from a backup, and what they lack is read again (restore.ts).
 * - The log went back: it ends before the position, or has another record there. It is read from its start.
 *   So a position moves only once a record has been read: markers of transactions alone leave nothing to compare.
 *
 * Another generation is the same case as a restart: an assignment belongs to the generation under which its positions were found. Within a
 * second the projector drops what it has read and not written, and reads on from the positions of the generation that is current now.
 *
 * Each shard has its own positions, and the lowest counts.
 */
import {
  type LogState,
  type PartitionRange,
  type Position,
  partitionName,
  type Start,
} from '../../log/port.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import { presentOf } from '../../tables/generation-log.ts'
import type { Databases, Shard } from '../../tables/port.ts'

/** What it takes to find the positions of these databases. */
export interface PositionsPlace {
  databases: Databases
  /** The shards that each have positions. */
  shards: readonly Shard[]
  /** Unix ms. */
  now: () => number
  warn: (message: string) => void
}

interface PositionsDependencies extends PositionsPlace {
  monotonicMs?: () => number
  /** Reads the positions, and notices a restore (restore.ts). */
  notice: (place: PositionsPlace, state: LogState) => Promise<Noticed>
}

/** `stored`: the positions in the tables. `restored`: those of a new era, if the tables went back. */
export interface Noticed {
  stored: StoredPositions
  restored?: Map<string, StoredPosition>
}

export type Positions = ReturnType<typeof createPositions>

const storeEveryMs = 1_000

export function createPositions(dependencies: PositionsDependencies) {
  const { now, monotonicMs = () => performance.now(), warn, notice } = dependencies
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
      const noticed = await notice({ ...dependencies, databases, shards: present }, state)
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

/* As they stand in the tables. */

/** A row of the table `positions`. Times are Unix ms. */
export interface StoredPosition {
  log: string
  topic: string
  partition: number
  era: number
  /** The offset to read next. */
  next: number
  /** When the record before `next` entered the log; 0: unknown. */
  lastAt: number
  /** Everything that the partition had at this time is read. */
  readUntil: number
  /** What is before this offset is read again after a restore. */
  againUntil: number
  /** The watermark that lists had shown before the restore. What is read again gets a stamp from then on. */
  lostWatermark: number
}

const columns = [
  { name: 'log', type: 'String' },
  { name: 'topic', type: 'String' },
  { name: 'partition', type: 'UInt32' },
  { name: 'era', type: 'UInt32' },
  { name: 'next', type: 'UInt64' },
  { name: 'last_at', type: 'Int64' },
  { name: 'read_until', type: "DateTime64(3, 'UTC')" },
  { name: 'again_until', type: 'UInt64' },
  { name: 'lost_watermark', type: "DateTime64(3, 'UTC')" },
] as const

export interface StoredPositions {
  /** Of this log, by partition: the lowest of all shards. */
  ofLog: Map<string, StoredPosition>
  /** When every partition was last known to be read, by log. */
  readUntil: Map<string, number>
}

/** The positions in the tables. A shard without a row for a partition has nothing of it. */
export async function readPositions(shards: readonly Shard[], log: string): Promise<StoredPositions> {
  const byShard = await Promise.all(
    shards.map(({ tables, databases: { ledger } }) =>
      tables.rows<StoredPosition>({
        query: `SELECT log, topic, partition, latest.1 AS era, latest.2 AS next, latest.3 AS lastAt, latest.4 AS readUntil,
                  latest.5 AS againUntil, latest.6 AS lostWatermark
                FROM
                (
                  SELECT log, topic, partition, max((era, next, last_at, toUnixTimestamp64Milli(read_until), again_until,
                    toUnixTimestamp64Milli(lost_watermark))) AS latest
                  FROM ${ledger}.positions GROUP BY log, topic, partition
                )`,
      }),
    ),
  )
  const rows = byShard.flat()
  const ofLog = Map.groupBy(
    rows.filter(row => row.log === log),
    partitionName,
  )
  const complete = [...ofLog].filter(([, found]) => found.length === shards.length)
  return {
    ofLog: new Map(complete.map(([name, found]) => [name, found.reduce(lower)])),
    readUntil: new Map(
      [...Map.groupBy(rows, row => row.log)].map(([name, found]) => [
        name,
        Math.min(...found.map(({ readUntil }) => readUntil)),
      ]),
    ),
  }
}

/** The eras go up together; a shard with a lower one was restored alone. */
function lower(one: StoredPosition, other: StoredPosition): StoredPosition {
  const [low, high] = one.next <= other.next ? [one, other] : [other, one]
  return {
    ...low,
    era: Math.max(low.era, high.era),
    readUntil: Math.min(low.readUntil, high.readUntil),
    againUntil: Math.max(low.againUntil, high.againUntil),
    lostWatermark: Math.max(low.lostWatermark, high.lostWatermark),
  }
}

/**
 * Since when a partition that the tables do not know is followed. Tables that were filled from another log have missed deletions since
 * that one was read.
 */
export function readUntilOfNew(stored: StoredPositions | undefined, now: number): number {
  return Math.max(...(stored?.readUntil.values() ?? []), 0) || now
}

export function startOfLog(
  log: string,
  { topic, partition, low }: LogState['partitions'][number],
  readUntil: number,
): StoredPosition {
  return {
    ...{ log, topic, partition, era: 0, next: low, lastAt: 0 },
    ...{ readUntil, againUntil: 0, lostWatermark: 0 },
  }
}

export async function writePositions(
  shards: readonly Shard[],
  rows: readonly StoredPosition[],
): Promise<void> {
  if (rows.length === 0) return
  const values = rows.map(row => [
    ...[row.log, row.topic, row.partition, row.era, row.next, Math.round(row.lastAt)],
    ...[row.readUntil, row.againUntil, row.lostWatermark],
  ])
  await Promise.all(
    shards.map(({ tables, databases: { ledger } }) =>
      tables.insert({ table: `${ledger}.positions`, columns, rows: encodeRows(columns, values) }),
    ),
  )
}
