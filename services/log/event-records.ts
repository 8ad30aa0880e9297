/** Makes the record for the log from a line of NDJSON, for every reader of lines. Pure. */
import type { StateEncoder } from '../../contracts/events/codec.ts'
import { type ChangeEvent, type StateEvent, topicOf } from '../../contracts/events/event.ts'
import { type ParsedLine, parseEventLine } from '../../contracts/events/ndjson.ts'
import { grouped } from '../runtime/progress.ts'
import { type Line, measuredBytesMax } from './event-lines.ts'
import type { NewRecord } from './port.ts'

/** The longest line, without its end. */
export const eventLineBytesMax = 1024 ** 2

/** Whether the line is blank. A blank line is neither an event nor a fault. */
export function isBlank(line: Line): boolean {
  return 'bytes' in line && line.bytes.every(byte => byte === 0x20 || byte === 0x09)
}

/** Reads the event of a line, or returns its fault. */
export function readEventLine(line: Line, lineBytesMax: number): ParsedLine {
  if ('byteCount' in line) {
    const size =
      line.byteCount >= measuredBytesMax ? 'more than a gigabyte' : `${grouped(line.byteCount)} bytes`
    return { fault: { field: 'line', reason: `is ${size} long; ${grouped(lineBytesMax)} are allowed` } }
  }
  const read = parseEventLine(line.bytes)
  if (line.isEnded || 'event' in read || read.fault.field !== 'line') return read
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
