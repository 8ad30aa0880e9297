/**
 * A progress bar for a person at a terminal: one line that is painted again and again. If the stream is not a
 * terminal, nothing is painted, so logs and pipes stay clean.
 */

type Terminal = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

interface Activity {
  /** The activity, in one word. */
  label: string
  /** The final value of `done`; `undefined` if it is not known, for example for a pipe. */
  total?: number | undefined
  /** How an amount is written. Default: digits in groups of three. */
  format?: (amount: number) => string
}

const paintMs = 100
const barWidth = 24
const columnsDefault = 80
const eraseLine = '\r\x1b[K'

export function createProgress(stream: Terminal, activity: Activity) {
  const startedMs = performance.now()
  const line = createPaintedLine(stream)
  return {
    /** How much is done, and a detail to show. Call it as often as you like: it paints a few times per second. */
    update(done: number, detail = ''): void {
      line.paint(() => progressText({ ...activity, done, detail, elapsedMs: performance.now() - startedMs }))
    },
    /** Clears the line, so that the next output starts on an empty one. */
    done: line.wipe,
  }
}

/** One line of a terminal that is painted again and again. Does nothing if the stream is not a terminal. */
export function createPaintedLine(stream: Terminal) {
  let paintedMs: number | undefined
  return {
    /** Call it as often as you like: the text is made and painted a few times per second. */
    paint(text: () => string): void {
      const atMs = performance.now()
      if (!stream.isTTY || (paintedMs !== undefined && atMs - paintedMs < paintMs)) return
      paintedMs = atMs
      // A line that wraps could not be painted over.
      stream.write(eraseLine + text().slice(0, (stream.columns || columnsDefault) - 1))
    },
    /** Clears the line, so that the next output starts on an empty one. */
    wipe(): void {
      if (paintedMs !== undefined) stream.write(eraseLine)
      paintedMs = undefined
    },
  }
}

/** The line: `appending [####----] 43%  177 of 411 MB  0:07 left  612,345 lines`. Pure. */
export function progressText(
  activity: Activity & { done: number; detail?: string; elapsedMs: number },
): string {
  const { label, done, total, detail = '', elapsedMs, format = grouped } = activity
  if (!total) return `${label}  ${format(done)}  ${detail}`.trimEnd()
  const share = Math.min(Math.max(done / total, 0), 1)
  const amounts = `${format(done)} of ${format(total)}`
  // An estimate from very little progress would jump.
  const left = clock(share >= 0.01 ? elapsedMs / share - elapsedMs : null)
  return `${label} ${barText(share, barWidth)}  ${amounts}  ${left} left  ${detail}`.trimEnd()
}

/** `[####----] 50%`, for a share from 0 to 1. */
function barText(share: number, width: number): string {
  const filled = Math.round(share * width)
  return `[${'#'.repeat(filled)}${'-'.repeat(width - filled)}] ${Math.floor(share * 100)}%`
}

/** Digits in groups of three, independent of the locale. */
export function grouped(amount: number): string {
  return String(amount).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1,234 records`, `1 record`. */
export function counted(amount: number, what: string): string {
  return `${grouped(amount)} ${what}${amount === 1 ? '' : 's'}`
}

/** Bytes in megabytes of 10^6. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}

/** Minutes and seconds, or `-:--` if the time is not known. */
export function clock(ms: number | null): string {
  if (ms === null) return '-:--'
  const seconds = Math.ceil(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
