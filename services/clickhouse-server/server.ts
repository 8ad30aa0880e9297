/**
 * ClickHouse's own server beside this process, for as long as this process lives.
 *
 * It listens on the loopback only. It ends with this process, for any reason (main.ts). If it dies alone, it is
 * restarted on the same ports, after a pause that grows. Statements that were running fail as with any ClickHouse
 * that is away, and their callers try again. If it cannot be restarted within `downMsMax`, `failed` resolves.
 */
import type { Logger } from 'pino'
import { backoffMs } from '../runtime/async/retry.ts'
import { sleep } from '../runtime/async/sleep.ts'
import { messageOf } from '../runtime/message-of.ts'
import { watchAnalysts } from './analysts.ts'
import { programUser } from './configuration.ts'
import { type StartOptions, start, startAgain } from './start.ts'

interface ClickHouseServerOptions extends StartOptions {
  /** How long it may be away before it is given up, ms. */
  downMsMax?: number
  logger: Logger
}

export type ClickHouseServer = Awaited<ReturnType<typeof startClickHouseServer>>

const restartPauses = { pauseMsMin: 100, pauseMsMax: 2_000 }
// A server that lived this long did not fail at its start.
const steadyMs = 5_000

/** Resolves once it answers. Throws `ServerStartError`. */
export async function startClickHouseServer(options: ClickHouseServerOptions) {
  const { logger, downMsMax = 60_000 } = options
  const { configuration, child: first } = await start(options)
  const failed = Promise.withResolvers<Error>()
  const closing = new AbortController()
  let child = first
  let outage: string | undefined

  /** Restarts the process each time it has ended, until it is closed or given up. */
  async function watch(): Promise<void> {
    let attempts = 0
    for (;;) {
      const startedAt = performance.now()
      const cause = await child.ended
      if (closing.signal.aborted) return
      outage = cause
      logger.error({ cause }, 'ClickHouse ended unexpectedly; it is restarted')
      const endedAt = performance.now()
      if (endedAt - startedAt > steadyMs) attempts = 0
      while (outage !== undefined) {
        await sleep(backoffMs(++attempts, restartPauses), closing.signal)
        if (closing.signal.aborted) return
        try {
          child = await startAgain(configuration)
          outage = undefined
        } catch (error) {
          outage = messageOf(error)
          logger.error({ error: outage }, 'ClickHouse could not be started again')
          if (performance.now() < endedAt + downMsMax) continue
          return failed.resolve(new Error(`ClickHouse could not be restarted: ${outage}`))
        }
      }
      if (closing.signal.aborted) return child.kill()
      logger.info({ pid: child.pid }, 'ClickHouse runs again')
    }
  }

  /** Analysts hold what only a restart frees. */
  async function takeBack(held: string): Promise<void> {
    if (closing.signal.aborted) return
    logger.error({ held }, 'ClickHouse is restarted, because analysts hold what cannot be taken back')
    await child.kill()
  }

  const watching = Promise.all([
    watch(),
    configuration.analyst &&
      watchAnalysts(configuration, () => outage !== undefined, closing.signal, takeBack),
  ])
  return {
    url: `http://127.0.0.1:${configuration.httpPort}`,
    user: programUser,
    password: configuration.programPassword,
    nativePort: configuration.nativePort,
    /** The id of the current process, or of the last one. */
    pid: () => child.pid,
    /** Why it is away; `undefined` while it runs. */
    outage: () => outage,
    /** Resolves if it could not be restarted in time. */
    failed: failed.promise,
    /** Ends the process and does not restart it. Close its clients first. */
    async close() {
      closing.abort()
      await child.kill()
      await watching
    },
    /** kill -9, as in an accident. The process is restarted. */
    kill: () => child.kill(),
  }
}
