/**
 * Days that end when a test wants it. ClickHouse's clock cannot be set, so every statement that stamps, or that reads the stamps'
 * clock, gets one that is ahead in the place of `now64`. Everything else stays as it is, and so do the views: a day is a UTC day.
 */
import type { Statement, Tables } from '../../../services/tables/port.ts'

export const dayMs = 86_400_000

export type StampClock = ReturnType<typeof createStampClock>

/** The text of a statement; if it is about stamps, with a clock that is ahead, or behind if `aheadMs` is negative. */
export function withMovedClock(query: string, aheadMs: number): string {
  // Statements of the fold read the watermarks; `toString(now64` is the clock with which a rebuild compares stamps.
  const isAboutStamps = query.includes('.watermarks') || query.includes('toString(now64')
  return isAboutStamps
    ? query.replaceAll("now64(3, 'UTC')", `(now64(3, 'UTC') + toIntervalMillisecond(${aheadMs}))`)
    : query
}

export function createStampClock(now: () => number = Date.now) {
  let aheadMs = 0
  const ahead = (statement: Statement): Statement => ({
    ...statement,
    query: withMovedClock(statement.query, aheadMs),
  })
  const clock = {
    /** Unix ms. */
    now: (): number => now() + aheadMs,
    startedAt: now(),
    moveForward(ms: number): void {
      aheadMs += Math.max(0, Math.round(ms))
    },
    /** Moves it to this time before the next midnight, UTC. */
    moveBeforeMidnight(ms: number): void {
      clock.moveForward(dayMs - (clock.now() % dayMs) - ms)
    },
    /** The tables with this clock. */
    on: (tables: Tables): Tables => ({
      ...tables,
      rows: (statement, options) => tables.rows(ahead(statement), options),
      run: (statement, options) => tables.run(ahead(statement), options),
    }),
  }
  return clock
}
