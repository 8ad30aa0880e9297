/** Reading into a generation: archived files, and the log up to its end. */
import { encodeState } from '../../contracts/events/codec.ts'
import type { EventReader, PartitionLag, Position } from '../shared/event-log/port.ts'
import { endsOf } from './ingest.ts'
import { enter, type Work } from './work.ts'

const catchUpRoundsMax = 100
// Once a round took no longer than this, the rest is for when nobody folds.
const catchUpMs = 2_000

/** All files, from the first on. */
export async function readFiles(work: Work): Promise<void> {
  const { log, model, signal, encode = encodeState } = work
  await enter(work, 'reading files')
  const { openArchiveReader } = await import('./archive-reader.ts')
  const archive = await openArchiveReader(log.detail.request.files, { encode })
  try {
    const onLag = () => log.progress({ ...archive.progress(), unit: 'bytes' })
    await model.ingest({ reader: archive, target: archive.end, into: 'shadow', onLag }, signal)
  } finally {
    await archive.close()
  }
}

/** Reads and folds until there is next to nothing left, or for so many rounds. */
export async function catchUp(work: Work, reader: EventReader): Promise<void> {
  const { model, monotonicMs } = work
  for (let round = 0; round < catchUpRoundsMax; round++) {
    const startedAt = monotonicMs()
    await ingestToEnd(work, reader, 'shadow')
    await model.folder.fold()
    if (monotonicMs() - startedAt < catchUpMs) return
  }
}

/** Reads up to where the log ends now. */
export async function ingestToEnd(work: Work, reader: EventReader, into: 'shadow' | 'live'): Promise<void> {
  const { log, model, signal } = work
  const target = await endsOf(reader)
  const end = sumOf(target)
  const onLag = (lag: readonly PartitionLag[]) => {
    const at = sumOf(lag.map(({ topic, partition, committed }) => ({ topic, partition, next: committed })))
    if (log.detail.logStart === null) log.note({ logStart: at })
    const start = log.detail.logStart ?? at
    const lagRecords = lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
    log.progress({ done: at - start, of: Math.max(end, at) - start, unit: 'records', lagRecords })
  }
  await model.ingest({ reader, target, into, onLag }, signal)
}

function sumOf(positions: readonly Position[]): number {
  return positions.reduce((sum, { next }) => sum + next, 0)
}
