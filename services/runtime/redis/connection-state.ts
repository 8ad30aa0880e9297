/** The state of a connection to Redis: whether it is up, its subscribers, and one log line per change. */
import type { Logger } from 'pino'
import { messageOf } from '../message-of.ts'

export interface RedisState {
  isUp(): boolean
  /**
   * Counts how often the connection came up. A failure from an earlier connection says nothing about the present one.
   */
  upCount(): number
  /** How long the present state has lasted. */
  stateAgeMs(): number
  setUp(server: string | undefined): void
  /** Does nothing if it is unavailable already, so that an outage is one log line. */
  setUnavailable(error: unknown): void
  close(): void
  /** See `RedisConnection`. */
  onUp(callback: UpCallback): void
}

export type UpCallback = (server: string | undefined) => void

export interface RedisStateDependencies {
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
  logger: Logger
  onChange?: ((isUp: boolean) => void) | undefined
}

/** Creates the state of a connection that has not come up yet. */
export function createRedisState({ now, logger, onChange }: RedisStateDependencies): RedisState {
  const callbacks: UpCallback[] = []
  let state: 'starting' | 'up' | 'unavailable' | 'closed' = 'starting'
  let changedAt = now()
  let upCount = 0
  let server: string | undefined

  return {
    isUp: () => state === 'up',
    upCount: () => upCount,
    stateAgeMs: () => now() - changedAt,

    setUp(reached) {
      if (state === 'closed') return
      logger.info({ awayMs: Math.round(now() - changedAt) }, 'Redis is available')
      state = 'up'
      changedAt = now()
      upCount++
      server = reached
      onChange?.(true)
      for (const callback of callbacks) callback(server)
    },

    setUnavailable(error) {
      if (state === 'unavailable' || state === 'closed') return
      logger.warn({ error: messageOf(error) }, 'Redis is unavailable')
      state = 'unavailable'
      changedAt = now()
      onChange?.(false)
    },

    close() {
      state = 'closed'
    },

    onUp(callback) {
      callbacks.push(callback)
      if (state === 'up') callback(server)
    },
  }
}
