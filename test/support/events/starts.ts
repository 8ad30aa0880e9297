/** Readers that begin where a test says. */
import type { FindStarts } from '../../../services/log/port.ts'

/** Every partition is read from its first record. */
export const fromStart: FindStarts = startsAt({})

/** By `topic/partition`. The other partitions are read from their first record. */
export function startsAt(next: Readonly<Record<string, number>>): FindStarts {
  return {
    find: async () => new Map(Object.entries(next).map(([name, at]) => [name, { next: at, lastAt: 0 }])),
    beginAnew() {},
  }
}
