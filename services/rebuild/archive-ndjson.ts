/** Change events of an NDJSON file, by the same lines that `events append` takes. */
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { type Line, splitLines } from '../shared/event-lines.ts'
import { eventLineBytesMax, isBlank, readEventLine } from '../shared/event-records.ts'
import type { ByteReader } from './archive-bytes.ts'
import { ArchiveError } from './archive-error.ts'

/** The events in order, some at a time, each parsed when it is asked for. Throws `ArchiveError`, naming the line. */
export async function* ndjsonEvents(path: string, bytes: ByteReader): AsyncGenerator<Iterable<ChangeEvent>> {
  for await (const lines of splitLines(bytes.rest(), eventLineBytesMax)) yield eventsOf(path, lines)
}

function* eventsOf(path: string, lines: readonly Line[]): Generator<ChangeEvent> {
  for (const line of lines) {
    if (isBlank(line)) continue
    const read = readEventLine(line, eventLineBytesMax)
    if ('event' in read) {
      yield read.event
      continue
    }
    const { field, reason } = read.fault
    const subject = field === 'line' ? 'the line' : field
    throw new ArchiveError(path, { line: line.number }, `${subject} ${reason}`)
  }
}
