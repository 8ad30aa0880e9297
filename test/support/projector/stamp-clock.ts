/**
 * Days that end when a test wants it. ClickHouse's clock cannot be set, so every statement that stamps, or that reads the stamps'
 * clock, gets one that is ahead in the place of `now64`. Everything else stays as it is, and so do the views: a day is a UTC day.
 */
import type { Statement, Tables } from '../../../services/tables/port.ts'

export const dayMs = 86_400_000

export interface StampClock {
  /** Unix ms. */
  now(): number
  moveForward(ms: number): void
  /** Moves it to this time before the next midnight, UTC. */
  moveBeforeMidnight(ms: number): void
  /** The tables with this clock. */
  on(tables: Tables): Tables
}

/** The text of a statement; if it is about stamps, with a clock that is ahead, or behind if `aheadMs` is negative. */
export function withMovedClock(query: string, aheadMs: number): string {
  // Statements of the fold read the watermarks; `toString(now64` is the clock with which a rebuild compares stamps.
  const isAboutStamps = query.includes('.watermarks') || query.includes('toString(now64')
  return isAboutStamps
    ? query.replaceAll("now64(3, 'UTC')", `(now64(3, 'UTC') + toIntervalMillisecond(${aheadMs}))`)
    : query
}

export function createStampClock(now: () => number = Date.now): StampClock {
  let aheadMs = 0
  const ahead = (statement: Statement): Statement => ({
    ...statement,
    query: withMovedClock(statement.query, aheadMs),
  })
  const clock: StampClock = {
    now: () => now() + aheadMs,
    moveForward(ms) {
      aheadMs += Math.max(0, Math.round(ms))
    },
    moveBeforeMidnight(ms) {
      clock.moveForward(dayMs - (clock.now() % dayMs) - ms)
    },
    on: tables => ({
      ...tables,
      rows: (statement, options) => tables.rows(ahead(statement), options),
      run: (statement, options) => tables.run(ahead(statement), options),
    }),
  }
  return clock
}
