/**
 * The rebuild bench's server: an embedded model of the whole history, with the default settings of `npm start`, the query service's app
 * over its tables, and a rebuild on request. After it every campaign has to be as it was before.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { liveConsumer, openEmbeddedModel } from '../../../services/embedded/model.ts'
import { runRebuild } from '../../../services/generations/rebuild.ts'
import { openJournalHistory, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { backerHasher } from '../../../services/projector/ingest/backer-hash.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { newRecordOf } from '../../support/events/sample-events.ts'
import { wholeRequest } from '../../support/generations/rebuild-request.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { startPlatformApp } from '../platform/app.ts'
import { secondsOf } from '../platform/fold.ts'
import type { PlatformSize } from '../platform/platform.ts'
import { peakBytesOf } from '../process-usage.ts'
import { historyEvents } from './history.ts'

export interface RebuildServiceInput extends PlatformSize {
  directory: string
}

export interface RebuildServiceReady {
  apiUrl: string
  headers: Record<string, string>
  drainSeconds: number
  /** Peak resident memory of this process and ClickHouse's together. */
  peakBytes: number
}

export interface RebuildRun {
  seconds: number
  records: number
  peakBytes: number
}

const recordsPerAppend = 20_000
// The longest time for the list index to load, and for ClickHouse to become idle.
const settleMs = 5_000

const { directory, ...size } = benchInput<RebuildServiceInput>()
const config = readConfig({})
const logger = pino({ level: 'silent' })
const files = openDataDirectory(directory)
await appendHistory()
const model = await openEmbeddedModel({ directory: files, config, metrics: createMetrics(), logger })
const { tables, databases } = model
const drainSeconds = await secondsOf(() => model.whenDrained())
const app = await startPlatformApp(tables, databases, {})
const history = await openJournalHistory(files.journal, liveConsumer)
await delay(settleMs)

const peakBytes = () => peakBytesOf(process.pid) + peakBytesOf(model.clickHouse.pid())
const { apiUrl, headers } = app
const ready: RebuildServiceReady = { apiUrl, headers, drainSeconds, peakBytes: peakBytes() }
serveBench({
  ready,
  answer: rebuild,
  async close() {
    await app.close()
    await history.close()
    await model.close()
  },
})

async function appendHistory(): Promise<void> {
  const writer = await openJournalWriter(files.journal)
  let records: NewRecord[] = []
  for (const event of historyEvents(size)) {
    records.push(newRecordOf(event))
    if (records.length < recordsPerAppend) continue
    await writer.append(records)
    records = []
  }
  await writer.append(records)
  await writer.close()
}

async function rebuild(): Promise<RebuildRun> {
  const startedMs = performance.now()
  const result = await runRebuild(
    {
      ...{ tables, databases, history, config, logger },
      hashBacker: backerHasher(model.secrets.backerKey),
      run: 'rebuild',
      isAlone: true,
      onProgress: () => {},
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: Math.random,
      sleep,
    },
    wholeRequest,
    new AbortController().signal,
  )
  const seconds = (performance.now() - startedMs) / 1000
  const { differences, rejects, records } = result.detail
  if (rejects > 0 || differences?.same !== size.campaigns)
    throw new Error(`the rebuild differs from the live model: ${JSON.stringify({ differences, rejects })}`)
  return { seconds, records, peakBytes: peakBytes() }
}
