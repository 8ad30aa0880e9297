/**
 * One ingest run, as a separate process: the projector on a prepared data directory until everything is folded, or the
 * ceiling, which only reads and decodes.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { pino } from 'pino'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { openEmbeddedModel } from '../../../services/embedded/model.ts'
import { openJournalReader } from '../../../services/log/local/journal.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { fromStart } from '../../support/events/starts.ts'
import { benchInput, createCpuMeter, serveBench } from '../bench-process.ts'
import { peakBytesOf } from '../process-usage.ts'

export interface IngestRunInput {
  kind: 'projector' | 'ceiling'
  /** A data directory with a journal that this kind of run has never read. */
  directory: string
}

export interface IngestRunResult {
  records: number
  seconds: number
  /** CPU time of the thread that reads and decodes. */
  cpuSeconds: number
  /** Peak resident memory of this process and ClickHouse's together. */
  peakBytes: number
}

// The projector's poll size. It polls in these slices so that decoding does not block for long.
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
  const peakBytes = peakBytesOf(process.pid) + peakBytesOf(model.clickHouse.pid())
  await model.close()
  if (rejects > 0) throw new Error(`${rejects} records were rejected`)
  return { records, seconds, cpuSeconds, peakBytes }
}

async function readAndDecode(root: string): Promise<IngestRunResult> {
  const { signal } = new AbortController()
  const bounds = {
    recordsMax: sliceRecordsMax,
    bytesMax: readConfig({}).PLEDGEVIEW_BATCH_BYTES_MAX,
    waitMsMax: 0,
  }
  const reader = await openJournalReader(openDataDirectory(root).journal, {
    consumer: 'ceiling',
    starts: fromStart,
  })
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
    await yieldToEventLoop()
  }
  const seconds = (performance.now() - startedMs) / 1000
  const cpuSeconds = cpuMs() / 1000
  await reader.close()
  return { records, seconds, cpuSeconds, peakBytes: peakBytesOf(process.pid) }
}
