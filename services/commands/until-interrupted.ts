import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { messageOf } from './command.ts'

const closeMsMax = 15_000

/**
 * Runs the work until it ends or the process is told to: then the work's signal aborts, and it has `closeMsMax` to end.
 * Resolves with the exit code. A failure of the work is thrown; one from elsewhere in the process ends it.
 */
export async function untilInterrupted(
  logger: Logger,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const stop = new AbortController()
  const running = work(stop.signal)
  const grace = closeWithGrace({ delay: closeMsMax, logger: false }, async ({ err }) => {
    if (err) logger.fatal({ error: messageOf(err), stack: err.stack }, 'closing after a failure')
    stop.abort()
    await running
  })
  try {
    await running
    return 0
  } finally {
    grace.uninstall()
  }
}
