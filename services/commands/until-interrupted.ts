import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { messageOf } from '../runtime/message-of.ts'

/** A supervisor has to wait for longer than this before it kills the process. */
export const closeMsMax = 15_000

/**
 * Runs the work until it ends or the process is interrupted. Then the work's signal aborts, and the work has
 * `closeMsMax` to end. Resolves with the exit code. A failure of the work is thrown. A failure elsewhere in the
 * process ends the process.
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
