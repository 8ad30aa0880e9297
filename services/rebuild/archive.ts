/**
 * Archived change events, read from files for a rebuild: NDJSON as `events append` takes it, or Avro object container
 * files as sinks of Kafka Connect write them, either with gzip around it.
 *
 * The first thing that is wrong stops the reading, with its file and place. Records that came before it may be wrong as
 * well where only a later checksum tells (gzip), so nobody may go on with them. Memory is bounded, whatever the files.
 */
import { encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import type { NewRecord } from '../shared/event-log/port.ts'
import { recordOf } from '../shared/event-records.ts'
import { openContainerEvents } from './archive-avro.ts'
import { type ArchiveFile, type ArchiveKind, openArchiveFile } from './archive-file.ts'
import { ndjsonEvents } from './archive-ndjson.ts'

export { ArchiveError } from './archive-error.ts'

/** Bytes as the files have them on disk, gzip included; they run ahead of the records by what is buffered. */
export interface ArchiveProgress {
  bytesDone: number
  bytesTotal: number
  records: number
}

export interface ReadArchiveOptions {
  /** Frames with the ids that the log's readers resolve; the fixed ones by default. */
  encode?: StateEncoder
  /** Called after each piece that was taken, and at the end. */
  onProgress?: (progress: ArchiveProgress) => void
  /** Reading ends with its reason. */
  signal?: AbortSignal
}

const recordsMax = 2_000
const bytesMax = 4 * 1024 ** 2

/**
 * Checks that all files can be opened and what they are, by content and not by name, headers of container files
 * included. Throws `ArchiveError`, naming the file. Resolves with the total of their bytes on disk.
 */
export async function inspectArchive(
  paths: readonly string[],
): Promise<{ bytesTotal: number; files: { path: string; kind: ArchiveKind }[] }> {
  const files: { path: string; kind: ArchiveKind }[] = []
  let bytesTotal = 0
  for (const path of paths) {
    const file = await openArchiveFile(path)
    try {
      if (file.kind === 'avro') await openContainerEvents(path, file.bytes)
    } finally {
      await file.close()
    }
    files.push({ path, kind: file.kind })
    bytesTotal += file.size
  }
  return { bytesTotal, files }
}

/**
 * The records in the order of files and lines, at most 2,000 or about 4 MiB at a time. Looks at all files before it
 * reads the first. Throws `ArchiveError`, naming file, line or block and object, and the reason.
 */
export async function* readArchive(
  paths: readonly string[],
  { encode = encodeState, onProgress = () => undefined, signal }: ReadArchiveOptions = {},
): AsyncGenerator<NewRecord[]> {
  signal?.throwIfAborted()
  const { bytesTotal } = await inspectArchive(paths)
  const progress: ArchiveProgress = { bytesDone: 0, bytesTotal, records: 0 }
  const onBytes = (count: number): void => {
    progress.bytesDone += count
  }
  let piece: NewRecord[] = []
  let bytes = 0
  for await (const events of eventsOf(paths, onBytes)) {
    signal?.throwIfAborted()
    for (const event of events) {
      const record = recordOf(event, encode)
      piece.push(record)
      bytes += (record.key?.length ?? 0) + (record.value?.length ?? 0)
      if (piece.length < recordsMax && bytes < bytesMax) continue
      const full = piece
      piece = []
      bytes = 0
      yield full
      signal?.throwIfAborted()
      progress.records += full.length
      onProgress({ ...progress })
    }
  }
  if (piece.length > 0) yield piece
  progress.records += piece.length
  onProgress({ ...progress })
}

async function* eventsOf(
  paths: readonly string[],
  onBytes: (count: number) => void,
): AsyncGenerator<Iterable<ChangeEvent>> {
  for (const path of paths) {
    const file = await openArchiveFile(path, onBytes)
    try {
      yield* await fileEvents(file)
    } finally {
      await file.close()
    }
  }
}

async function fileEvents({
  path,
  kind,
  bytes,
}: ArchiveFile): Promise<AsyncGenerator<Iterable<ChangeEvent>>> {
  switch (kind) {
    case 'ndjson':
      return ndjsonEvents(path, bytes)
    case 'avro':
      return (await openContainerEvents(path, bytes))()
    default:
      return kind satisfies never
  }
}
