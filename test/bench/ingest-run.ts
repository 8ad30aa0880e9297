/**
 * One ingest run, in a process of its own: the projector over a prepared data directory until everything is folded, or
 * the ceiling, which only reads and decodes.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pino } from 'pino'
import { openDataDirectory } from '../../services/embedded/data-directory.ts'
import { openEmbeddedModel } from '../../services/embedded/model.ts'
import { createDecoder } from '../../services/projector/decode.ts'
import { readConfig } from '../../services/shared/config.ts'
import { openJournalReader } from '../../services/shared/event-log/journal/journal.ts'
import { createMetrics } from '../../services/shared/metrics.ts'
import { benchInput, createCpuMeter, serveBench } from './bench-process.ts'
import { peakMemoryBytes } from './machine.ts'

export interface IngestRunInput {
  kind: 'projector' | 'ceiling'
  /** A data directory with a journal that was never read under the kind's name. */
  directory: string
}

export interface IngestRunResult {
  records: number
  seconds: number
  /** Processor time of the thread that reads and decodes; ClickHouse has threads of its own. */
  cpuSeconds: number
  peakBytes: number
  /** From the start of the process to the first poll. */
  startSeconds: number
}

// What the projector asks of one poll; it polls in these slices so that its decoding holds nothing up for long.
const sliceRecordsMax = 2_000

const { kind, directory } = benchInput<IngestRunInput>()
serveBench({ ready: await (kind === 'projector' ? project(directory) : readAndDecode(directory)) })

async function project(root: string): Promise<IngestRunResult> {
  const model = await openEmbeddedModel({
    directory: openDataDirectory(root),
    config: readConfig({}),
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
  })
  const cpuMs = createCpuMeter()
  const startedMs = performance.now()
  await model.whenDrained()
  const seconds = (performance.now() - startedMs) / 1000
  const cpuSeconds = cpuMs() / 1000
  const { records, rejects } = model.projector.health()
  await model.close()
  if (rejects > 0) throw new Error(`${rejects} records were rejected`)
  return { records, seconds, cpuSeconds, peakBytes: peakMemoryBytes(), startSeconds: startedMs / 1000 }
}

async function readAndDecode(root: string): Promise<IngestRunResult> {
  const { signal } = new AbortController()
  const bounds = {
    recordsMax: sliceRecordsMax,
    bytesMax: readConfig({}).PLEDGEVIEW_BATCH_BYTES_MAX,
    waitMsMax: 0,
  }
  const reader = await openJournalReader(openDataDirectory(root).journal, { consumer: 'ceiling' })
  const decode = createDecoder()
  const cpuMs = createCpuMeter()
  const startedMs = performance.now()
  let records = 0
  for (;;) {
    const delivery = await reader.poll(bounds, signal)
    if (delivery.records.length === 0) break
    for (const record of delivery.records) {
      if ('reason' in decode(record))
        throw new Error(`offset ${record.offset} of ${record.topic} is a reject`)
    }
    records += delivery.records.length
    await nextTurn()
  }
  const seconds = (performance.now() - startedMs) / 1000
  const cpuSeconds = cpuMs() / 1000
  await reader.close()
  return { records, seconds, cpuSeconds, peakBytes: peakMemoryBytes(), startSeconds: startedMs / 1000 }
}
