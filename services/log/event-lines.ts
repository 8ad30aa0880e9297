/**
 * Lines of NDJSON, and the records that they become. A byte stream is split into lines. A line that is longer than its bound is never kept in memory.
 *
 * A line ends with LF or CR LF. The last line may have no end. A byte order mark before the first line is dropped.
 */
import type { StateEncoder } from '../../contracts/events/codec.ts'
import { type ChangeEvent, type StateEvent, topicOf } from '../../contracts/events/event.ts'
import { type ParsedLine, parseEventLine } from '../../contracts/events/ndjson.ts'
import { grouped } from '../runtime/progress.ts'
import { toBuffer } from '../runtime/to-buffer.ts'
import type { NewRecord } from './port.ts'

/** A line, numbered from 1. */
export interface Line {
  number: number
  /** Without the line end; undefined if there are more than the bound. */
  bytes: Uint8Array | undefined
  /** Whether a line end follows. */
  isEnded: boolean
}

const newline = 0x0a
const carriageReturn = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const linesPerYieldMax = 1_000

/** The lines in order, in groups. Their bytes are views that are valid until the next group is requested. */
export async function* splitLines(
  source: AsyncIterable<Uint8Array | string>,
  lineBytesMax: number,
): AsyncGenerator<Line[]> {
  let number = 1
  // The beginning of the line that continues in the next chunk, and its length. If it is too long, only the length is kept.
  let pieces: Buffer[] = []
  let piecesBytes = 0

  function takeLine(rest: Buffer, isEnded: boolean): Line {
    const isKept = piecesBytes + rest.length <= lineBytesMax
    const whole = isKept && pieces.length > 0 ? Buffer.concat([...pieces, rest]) : rest
    pieces = []
    piecesBytes = 0
    const line = { number, bytes: isKept ? bytesOf(number, whole) : undefined, isEnded }
    number++
    return line
  }

  for await (const data of source) {
    const chunk = typeof data === 'string' ? Buffer.from(data) : toBuffer(data)
    let lines: Line[] = []
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      lines.push(takeLine(chunk.subarray(start, end), true))
      start = end + 1
      if (lines.length < linesPerYieldMax) continue
      yield lines
      lines = []
    }
    yield lines
    const rest = chunk.subarray(start)
    piecesBytes += rest.length
    if (piecesBytes > lineBytesMax) pieces = []
    else if (rest.length > 0) pieces.push(Buffer.from(rest))
  }
  if (piecesBytes > 0) yield [takeLine(Buffer.alloc(0), false)]
}

function bytesOf(number: number, bytes: Buffer): Uint8Array {
  const start = number === 1 && bytes.subarray(0, 3).equals(byteOrderMark) ? byteOrderMark.length : 0
  const end = bytes.at(-1) === carriageReturn ? bytes.length - 1 : bytes.length
  return bytes.subarray(start, Math.max(start, end))
}

/** Whether the line is blank. A blank line is neither an event nor a fault. */
export function isBlank({ bytes }: Line): boolean {
  return bytes?.every(byte => byte === 0x20 || byte === 0x09) ?? false
}

/** Reads the event of a line, or returns its fault. */
export function readEventLine({ bytes, isEnded }: Line, lineBytesMax: number): ParsedLine {
  if (!bytes) return { fault: { field: 'line', reason: `is longer than ${grouped(lineBytesMax)} bytes` } }
  const read = parseEventLine(bytes)
  if (isEnded || 'event' in read || read.fault.field !== 'line') return read
  return {
    fault: {
      field: 'line',
      reason: `is the last one, has no line end and seems cut off: it ${read.fault.reason}`,
    },
  }
}

/** The record of an event, with its framed value. */
export function recordOf(event: ChangeEvent, encode: StateEncoder): NewRecord {
  return {
    topic: topicOf[event.type],
    key: Buffer.from(event.key),
    value: event.data === null ? null : encode(event as StateEvent),
  }
}
