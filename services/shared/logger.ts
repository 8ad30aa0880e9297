/**
 * The log: JSON lines on stderr.
 *
 * Lines are written some at a time, because a write a request costs as much as the request; a quarter of a second is
 * the most that a crash without a word could take with it. `fatal` and the process's end write at once.
 */
import { type Level, type Logger, pino } from 'pino'

const bufferedBytes = 8_192
const flushMs = 250

export function createLogger(level: Level | 'silent'): Logger {
  const destination = pino.destination({
    dest: 2,
    sync: false,
    minLength: bufferedBytes,
    periodicFlush: flushMs,
  })
  // An exit that comes early, before the stream is open, has nothing to write.
  process.on('exit', () => {
    try {
      destination.flushSync()
    } catch {}
  })
  return pino({ level }, destination)
}
