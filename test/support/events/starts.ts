/** Readers that begin where a test says. */
import type { FindStarts } from '../../../services/log/port.ts'
import type { Positions } from '../../../services/projector/positions/positions.ts'
import type { Databases } from '../../../services/tables/port.ts'

/** Every partition is read from its first record. */
export const fromStart: FindStarts = startsAt({})

/** For a reader that begins elsewhere, in a log that nothing else reads: no table keeps a position. */
export function unkept(databases: Databases): Positions {
  const none = async () => {}
  return {
    ...{ ...fromStart, store: none, storeRest: none, noteRead: none, restampBefore: () => 0 },
    ...{ databasesOf: () => databases, areSuperseded: () => false },
  }
}

/** By `topic/partition`. The other partitions are read from their first record. */
export function startsAt(next: Readonly<Record<string, number>>): FindStarts {
  return {
    find: async () => new Map(Object.entries(next).map(([name, at]) => [name, { next: at, lastAt: 0 }])),
    beginAnew() {},
  }
}
