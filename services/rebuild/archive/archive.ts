/**
 * Reads archived change events from files for a rebuild: NDJSON as `events append` accepts it, or Avro object container files
 * as Kafka Connect sinks write them. Either may be compressed with gzip.
 *
 * Reading stops at the first error and names its file and place. Records before it may be wrong too, because gzip has its
 * checksum at the end. So the caller must not use them. Memory is bounded, whatever the files contain.
 */
import { encodeState, type StateEncoder } from '../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { recordOf } from '../../shared/event-log/event-records.ts'
import type { NewRecord } from '../../shared/event-log/port.ts'
import { openContainerEvents } from './avro.ts'
import { type ArchiveFile, type ArchiveKind, openArchiveFile } from './file.ts'
import { ndjsonEvents } from './ndjson.ts'

export { ArchiveError } from './error.ts'

/** Bytes on disk, so with gzip. `bytesDone` is ahead of the records by what is buffered. */
export interface ArchiveProgress {
  bytesDone: number
  bytesTotal: number
  records: number
}

export interface ReadArchiveOptions {
  /** Frames with the ids that the log's readers resolve. Default: the fixed ids. */
  encode?: StateEncoder
  /** Called after each piece that the caller took, and at the end. */
  onProgress?: (progress: ArchiveProgress) => void
  /** Stops the reading. */
  signal?: AbortSignal
}

const recordsMax = 2_000
const bytesMax = 4 * 1024 ** 2

/**
 * Checks that all files can be opened, and detects their kind by content, not by name. Reads the headers of container files.
 * Throws `ArchiveError`, naming the file. Resolves with the total of their bytes on disk.
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
 * The records in the order of files and lines, at most 2,000 or about 4 MiB at a time. Checks all files before it reads the
 * first. Throws `ArchiveError`, naming the file, the line or block and object, and the reason.
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
