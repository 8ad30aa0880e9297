/**
 * The positions of the tables that a rebuild makes. They stand with the data and are swapped with it, so the rebuild reads on from
 * them after a kill, the projectors after the swap, and a rollback where the previous tables were (projector/positions.ts).
 */
import { isChangeTopic } from '../../contracts/events/event.ts'
import {
  createPositions,
  type Positions,
  type PositionsShard,
  readPositions,
  writePositions,
} from '../projector/positions.ts'
import type { History } from '../shared/event-log/history.ts'
import { partitionName } from '../shared/event-log/port.ts'
import { openParts, type RebuildContext } from './context.ts'
import type { RebuildPart } from './parts.ts'
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
      const { fromTime } = tracker.detail.request
      const { ofLog } = await readPositions(openShards(), state.log)
      if (fromTime !== null && ofLog.size === 0) {
        const first = await history.positionsAt(fromTime)
        await writePositions(
          openShards(),
          first.map(({ topic, partition, next }) => ({
            ...{ log: state.log, topic, partition, era: 0, next, lastAt: 0 },
            // What was deleted before that time is known to the live tables only.
            ...{ readUntil: 0, againUntil: 0, lostWatermark: 0 },
          })),
        )
      }
      return positions.find(state)
    },
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
  const { ofLog: live } = await readPositions([part], log)
  const { ofLog: rebuilt } = await readPositions([shadowPart(part)], log)
  const era = Math.max(0, ...[...live.values(), ...rebuilt.values()].map(row => row.era)) + eraStep
  const rows = (await history.positionsAt(0)).map(({ topic, partition, next: first }) => {
    const name = partitionName({ topic, partition })
    const [before, after] = [live.get(name), rebuilt.get(name)]
    const { next, lastAt } = (isChangeTopic(topic) ? after : before) ?? { next: first, lastAt: 0 }
    const readUntil = Math.max(before?.readUntil ?? 0, after?.readUntil ?? 0) || now()
    const lostWatermark = before?.lostWatermark ?? 0
    return { log, topic, partition, era, next, lastAt, readUntil, againUntil: 0, lostWatermark }
  })
  await writePositions([shadowPart(part)], rows)
}

function shadowPart({ tables, databases }: RebuildPart): PositionsShard {
  return { tables, databases: shadowOf(databases) }
}
