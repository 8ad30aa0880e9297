/** From a line of NDJSON to the record that goes into the log: the same way for whoever reads lines. Pure. */
import type { StateEncoder } from '../../contracts/events/codec.ts'
import { type ChangeEvent, type StateEvent, topicOf } from '../../contracts/events/event.ts'
import { type ParsedLine, parseEventLine } from '../../contracts/events/ndjson.ts'
import { type Line, measuredBytesMax } from './event-lines.ts'
import type { NewRecord } from './event-log/port.ts'
import { grouped } from './progress.ts'

/** How long a line may be, without its end. */
export const eventLineBytesMax = 1024 ** 2

/** Whether there is nothing on the line: such a line is no event, and no fault. */
export function isBlank(line: Line): boolean {
  return 'bytes' in line && line.bytes.every(byte => byte === 0x20 || byte === 0x09)
}

/** Reads the event of a line, or says what is wrong with it. */
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

/** The record of an event, its value framed. */
export function recordOf(event: ChangeEvent, encode: StateEncoder): NewRecord {
  return {
    topic: topicOf[event.type],
    key: Buffer.from(event.key),
    value: event.data === null ? null : encode(event as StateEvent),
  }
}
