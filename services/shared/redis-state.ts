/** Whether a connection to Redis is up, who wants to know, and the log line of each change. */
import type { Logger } from 'pino'

export interface RedisState {
  isUp(): boolean
  /** Counts the times that the connection came up: the failure of an earlier one says nothing about this one. */
  era(): number
  /** For how long it has been as it is. */
  lastedMs(): number
  comeUp(server: string | undefined): void
  /** Does nothing where it is away already, so that an outage is one line of the log. */
  goAway(error: unknown): void
  close(): void
  /** See `RedisConnection`. */
  onUp(callback: UpCallback): void
  /** See `RedisConnection`. */
  whenUp(msMax: number): Promise<boolean>
}

export type UpCallback = (server: string | undefined) => void

export interface RedisStateDependencies {
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
  logger: Logger
  onChange?: ((isUp: boolean) => void) | undefined
}

export function createRedisState({ now, logger, onChange }: RedisStateDependencies): RedisState {
  const callbacks: UpCallback[] = []
  let state: 'starting' | 'up' | 'away' | 'closed' = 'starting'
  let changedAt = now()
  let era = 0
  let server: string | undefined

  return {
    isUp: () => state === 'up',
    era: () => era,
    lastedMs: () => now() - changedAt,

    comeUp(reached) {
      if (state === 'closed') return
      logger.info({ awayMs: Math.round(now() - changedAt) }, 'Redis answers')
      state = 'up'
      changedAt = now()
      era++
      server = reached
      onChange?.(true)
      for (const callback of [...callbacks]) callback(server)
    },

    goAway(error) {
      if (state === 'away' || state === 'closed') return
      logger.warn({ error: error instanceof Error ? error.message : String(error) }, 'Redis is away')
      state = 'away'
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

    whenUp(msMax) {
      if (state === 'up') return Promise.resolve(true)
      return new Promise(resolve => {
        const timer = setTimeout(settle, msMax, false)
        const callback = () => settle(true)
        callbacks.push(callback)
        function settle(isUp: boolean): void {
          clearTimeout(timer)
          callbacks.splice(callbacks.indexOf(callback), 1)
          resolve(isUp)
        }
      })
    },
  }
}
