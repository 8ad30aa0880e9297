/** Where the log is read for a generation that is built: its positions stand with its rows, as those of the projectors do. */
import type { LogState } from '../../log/port.ts'
import { createPositions, type Positions } from '../../projector/positions/positions.ts'
import {
  readPositions,
  type StoredPosition,
  writePositions,
} from '../../projector/positions/stored-positions.ts'
import type { RebuildContext } from '../context.ts'

/** A new generation is read from the start of the log. */
export function createBuildPositions({
  tables,
  rebuilt,
  parts,
  now,
  warn,
}: Pick<RebuildContext, 'tables' | 'rebuilt' | 'parts' | 'now'> & {
  warn: (message: string) => void
}): Positions {
  const shards = parts.map(part => ({ tables: part.tables, databases: part.rebuilt }))
  const positions = createPositions({ tables, databases: rebuilt, shards, now, warn })
  return {
    ...positions,
    async find(state) {
      const { ofLog } = await readPositions(shards, state.log)
      if (ofLog.size === 0) await writePositions(shards, firstPositions(state))
      return positions.find(state)
    },
  }

  function firstPositions({ log, partitions }: LogState): StoredPosition[] {
    const none = { log, era: 0, lastAt: 0, againUntil: 0, lostWatermark: 0 }
    return partitions.map(({ topic, partition, low }) => ({
      ...{ ...none, topic, partition, next: low, readUntil: now() },
    }))
  }
}

/** The new generation knows every deletion that the current one knows, so it is read as far in time. */
export async function carryReadUntil({ parts }: Pick<RebuildContext, 'parts'>, log: string): Promise<void> {
  for (const { tables, live, rebuilt } of parts) {
    const [before, after] = await Promise.all(
      [live, rebuilt].map(databases => readPositions([{ tables, databases }], log)),
    )
    const rows = [...(after?.ofLog ?? [])].flatMap(([name, row]) => {
      const was = before?.ofLog.get(name)
      if (!was) return []
      const readUntil = Math.max(was.readUntil, row.readUntil)
      return [{ ...row, readUntil, lostWatermark: Math.max(was.lostWatermark, row.lostWatermark) }]
    })
    await writePositions([{ tables, databases: rebuilt }], rows)
  }
}
