/** The positions of a projector in a test. */
import { createPositions, type Positions } from '../../services/projector/positions.ts'
import type { Databases, Shard, Tables } from '../../services/shared/tables/port.ts'

export function positionsIn({
  tables,
  databases,
  cluster,
  warn = () => {},
}: {
  tables: Tables
  databases: Databases
  cluster?: { shards: readonly Shard[] } | undefined
  warn?: (message: string) => void
}): Positions {
  const shards = cluster?.shards ?? [{ tables, databases }]
  return createPositions({ tables, databases, shards, now: Date.now, warn })
}
