/**
 * The log: JSON lines on stderr.
 *
 * Lines are written in groups, because one write per request costs as much as the request. A crash can lose at most
 * the last quarter of a second. `fatal` and the end of the process write at once.
 *
 * A log that cannot be written, as on a full disk, stops nothing. Lines wait for a later try, up to `waitingBytesMax`; further ones are
 * lost. pino's own destination ends the process with an error then, and waits for ever at its end.
 */
import { openSync, write, writeSync } from 'node:fs'
import { type Level, type Logger, pino } from 'pino'
import type { Runtime } from '../runtime.ts'
import { logInvariants } from './invariants.ts'

const bufferedBytes = 8_192
const waitingBytesMax = 1_048_576
const flushMs = 250
const fullPipeTriesMax = 20
const pauseMs = 50

/** `dest`: a file descriptor or a path. Default: stderr. */
export function createLogger(level: Level | 'silent', dest: number | string = 2): Logger {
  const destination = createDestination(typeof dest === 'number' ? dest : openSync(dest, 'a'))
  setInterval(destination.flush, flushMs).unref()
  process.on('exit', destination.flushSync)
  const logger = pino({ level }, destination)
  logInvariants(logger)
  return logger
}

/** Reports a repeated error at most once a minute. */
export function oncePerMinute(
  log: (error: unknown) => void,
  { monotonicMs }: Pick<Runtime, 'monotonicMs'>,
): (error: unknown) => void {
  let loggedAt = Number.NEGATIVE_INFINITY
  return error => {
    if (monotonicMs() - loggedAt < 60_000) return
    loggedAt = monotonicMs()
    log(error)
  }
}

function createDestination(fd: number) {
  let lines = ''
  /** What comes before these lines, and has been tried. */
  let bytes = Buffer.alloc(0)
  let isWriting = false

  function take(): boolean {
    bytes = Buffer.concat([bytes, Buffer.from(lines)])
    lines = ''
    return bytes.length > 0
  }

  function flush(): void {
    if (isWriting || !take()) return
    isWriting = true
    const tried = bytes
    write(fd, tried, (error, written) => {
      isWriting = false
      if (error || bytes !== tried) return
      bytes = bytes.subarray(written)
      if (bytes.length > 0 || lines.length >= bufferedBytes) flush()
    })
  }

  return {
    flush,
    /** pino calls it after a line of `fatal`. */
    flushSync(): void {
      // These are on their way.
      if (isWriting) bytes = Buffer.alloc(0)
      for (let tries = 0; take() && tries < fullPipeTriesMax; ) {
        try {
          bytes = bytes.subarray(writeSync(fd, bytes))
        } catch (error) {
          // A full pipe answers so.
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
          tries++
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
        }
      }
    },
    write(line: string): void {
      if (lines.length + bytes.length < waitingBytesMax) lines += line
      if (lines.length >= bufferedBytes) flush()
    },
  }
}
