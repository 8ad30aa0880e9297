/**
 * The positions of the tables that a rebuild makes. They stand with the data and are swapped with it, so the rebuild reads on from
 * them after a kill, the projectors after the swap, and a rollback where the previous tables were (projector/positions.ts).
 */
import { isChangeTopic } from '../../../contracts/events/event.ts'
import { type History, type LogState, partitionName } from '../../log/port.ts'
import {
  createPositions,
  type Positions,
  type PositionsShard,
  readPositions,
  readUntilOfNew,
  type StoredPosition,
  writePositions,
} from '../../projector/positions.ts'
import { openParts, type RebuildContext } from '../context.ts'
import type { RebuildPart } from '../parts.ts'
import { shadowOf } from './shadow-tables.ts'

// A backup that is restored at the same moment raises the live tables' era by one.
const eraStep = 2

/** Of the parts that are not swapped yet. New tables are read from the start of the log, or from the time in the request. */
export function createRebuildPositions(
  context: Pick<RebuildContext, 'tables' | 'databases' | 'parts' | 'history' | 'tracker' | 'now' | 'logger'>,
): Positions {
  const { tables, databases, history, tracker, now, logger } = context
  const openShards = () => openParts(context).map(shadowPart)
  const positions = createPositions({
    tables,
    databases: shadowOf(databases),
    get shards() {
      return openShards()
    },
    now,
    warn: message => logger.warn(message),
  })
  return {
    ...positions,
    async find(state) {
      const { log } = state
      const { ofLog } = await readPositions(openShards(), log)
      if (ofLog.size === 0) await writePositions(openShards(), await firstPositions(state))
      return positions.find(state)
    },
  }

  async function firstPositions({ log, partitions }: LogState): Promise<StoredPosition[]> {
    const { fromTime } = tracker.detail.request
    const none = { log, era: 0, lastAt: 0, againUntil: 0, lostWatermark: 0 }
    if (fromTime === null) {
      return partitions.map(({ topic, partition, low }) => {
        return { ...none, topic, partition, next: low, readUntil: now() }
      })
    }
    const first = await history.positionsAt(fromTime)
    // What was deleted before that time is known to the live tables only.
    return first.map(({ topic, partition, next }) => ({ ...none, topic, partition, next, readUntil: 0 }))
  }
}

/**
 * Gives the new tables of a part positions of a new era, in the fold pause and before the swap. Projectors read on from there, and
 * what they still store for the tables from before counts for nothing.
 *
 * The new tables know every deletion that the live ones know, so they are read as far in time. The portal's ledgers are not swapped:
 * their topics are read on where the live tables are.
 */
export async function beginEra(
  { history, now }: { history: Pick<History, 'positionsAt'>; now: () => number },
  part: RebuildPart,
  log: string,
): Promise<void> {
  const stored = await readPositions([part], log)
  const live = stored.ofLog
  const { ofLog: rebuilt } = await readPositions([shadowPart(part)], log)
  const era = Math.max(0, ...[...live.values(), ...rebuilt.values()].map(row => row.era)) + eraStep
  const fresh = readUntilOfNew(stored, now())
  const rows = (await history.positionsAt(0)).map(({ topic, partition, next: first }) => {
    const name = partitionName({ topic, partition })
    const [before, after] = [live.get(name), rebuilt.get(name)]
    const { next, lastAt } = (isChangeTopic(topic) ? after : before) ?? { next: first, lastAt: 0 }
    const readUntil = Math.max(before?.readUntil ?? fresh, after?.readUntil ?? 0)
    const lostWatermark = before?.lostWatermark ?? 0
    return { log, topic, partition, era, next, lastAt, readUntil, againUntil: 0, lostWatermark }
  })
  await writePositions([shadowPart(part)], rows)
}

function shadowPart({ tables, databases }: RebuildPart): PositionsShard {
  return { tables, databases: shadowOf(databases) }
}
