/** Change events of an NDJSON file, in the same lines that `events append` accepts. */
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { type Line, splitLines } from '../../shared/event-log/event-lines.ts'
import { eventLineBytesMax, isBlank, readEventLine } from '../../shared/event-log/event-records.ts'
import type { ByteReader } from './bytes.ts'
import { ArchiveError } from './error.ts'

/** The events in order, in groups. Each event is parsed when it is requested. Throws `ArchiveError`, naming the line. */
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
