/**
 * The log: JSON lines on stderr.
 *
 * Lines are written in groups, because one write per request costs as much as the request. A crash can lose at most
 * the last quarter of a second. `fatal` and the end of the process write at once.
 */
import { type Level, type Logger, pino } from 'pino'

const bufferedBytes = 8_192
const flushMs = 250

/** `dest`: a file descriptor or a path. Default: stderr. */
export function createLogger(level: Level | 'silent', dest: number | string = 2): Logger {
  const destination = pino.destination({
    dest,
    sync: false,
    minLength: bufferedBytes,
    periodicFlush: flushMs,
  })
  // If the process exits before the stream is open, there is nothing to write.
  process.on('exit', () => {
    try {
      destination.flushSync()
    } catch {}
  })
  return pino({ level }, destination)
}
