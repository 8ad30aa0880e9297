/**
 * Rebuild: how fast a whole history is replayed into shadow tables beside the live ones, compared with a ceiling that only
 * reads and decodes the same journal; how much memory and disk it uses; how long the fold is paused for the swap; and how
 * much slower the API answers.
 *
 * It rebuilds twice: once without requests, which is compared with the ceiling, and once under requests.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { openDataDirectory } from '../../services/local/data-directory.ts'
import { type BenchProcess, runBenchProcess, startBenchProcess } from './bench-process.ts'
import type { IngestRunInput, IngestRunResult } from './ingest-run.ts'
import type { PlatformSize } from './platform.ts'
import { type Measured, rebuildFigures } from './rebuild-figures.ts'
import type { RebuildFilled, RebuildFillInput } from './rebuild-fill.ts'
import { campaignVersions, eventCount } from './rebuild-history.ts'
import type { RebuildRequestsInput, RebuildRequestsOrder, RebuildRequestsResult } from './rebuild-requests.ts'
import type { RebuildOrder, RebuildRun, RebuildServiceInput, RebuildServiceReady } from './rebuild-service.ts'
import { bytesBelow, type Taken, watchProcesses } from './rebuild-watch.ts'
import type { BenchReport } from './report.ts'
import type { Workspace } from './workspace.ts'

/** The size that the targets are for. */
export const rebuildSize: PlatformSize = { campaigns: 400_000, pledges: 10_000_000 }

const requestsPerSecond = 10
const beforeMs = 60_000
const msMax = 3_600_000

export async function benchRebuild(workspace: Workspace, size: PlatformSize): Promise<BenchReport> {
  const directory = workspace.directory('rebuild')
  const fill: RebuildFillInput = { directory, ...size }
  const filled = await runBenchProcess<RebuildFilled>({ script: 'rebuild-fill.ts', input: fill, msMax })
  const ceilingBefore = await readOnly(directory, size)
  const served = await serve(directory, size)
  const ceilings = [ceilingBefore, await readOnly(directory, size)]
  return {
    bench: 'rebuild',
    notes: [
      `${size.campaigns} campaigns in ${campaignVersions} versions each and ${size.pledges} pledges in one: ${eventCount(size)} events, in the embedded form`,
      'with its default settings, journal and tables in one process with the API. No events arrive meanwhile, and both rebuilds',
      'left every campaign and every updated_at as it was. The ceiling: the same journal only read and decoded, before and after.',
      `Clients request ${requestsPerSecond} uncached lists and details per second. Times count from when each request was due.`,
    ],
    figures: rebuildFigures({ size, filled, ceilings, ...served }),
  }
}

async function readOnly(directory: string, size: PlatformSize): Promise<IngestRunResult> {
  const input: IngestRunInput = { kind: 'ceiling', directory }
  const result = await runBenchProcess<IngestRunResult>({ script: 'ingest-run.ts', input, msMax })
  mustBeWhole(result.records, size)
  return result
}

async function serve(
  directory: string,
  size: PlatformSize,
): Promise<Pick<Measured, 'atRest' | 'quiet' | 'asked' | 'tablesBytes' | 'diskBytes'>> {
  const input: RebuildServiceInput = { directory }
  const service = await startBenchProcess<RebuildServiceReady>({ script: 'rebuild-service.ts', input, msMax })
  const { apiUrl, headers, pids, tablesBytes } = service.ready
  const watched = { pids, directory: openDataDirectory(directory).tables }
  const requestsInput: RebuildRequestsInput = {
    apiUrl,
    headers,
    campaigns: size.campaigns,
    perSecond: requestsPerSecond,
  }
  const clients = await startBenchProcess({ script: 'rebuild-requests.ts', input: requestsInput, msMax })

  const ask = <T>(order: RebuildOrder) => service.ask<T>(order)

  async function rebuild(): Promise<{ run: RebuildRun; taken: Taken }> {
    const watch = watchProcesses(watched)
    try {
      const run = await ask<RebuildRun>({ order: 'rebuild' })
      mustBeWhole(run.records, size)
      return { run, taken: watch.stop() }
    } finally {
      watch.stop()
    }
  }

  try {
    const atRest = watchProcesses(watched).stop()
    const quiet = await rebuild()
    const diskBytes = bytesBelow(watched.directory)
    await ask({ order: 'drop' })
    const before = await asking(clients, () => delay(beforeMs))
    const during = await asking(clients, rebuild)
    return {
      atRest,
      tablesBytes,
      diskBytes,
      quiet,
      asked: { ...during.result, answersBefore: before.answers, answers: during.answers },
    }
  } finally {
    await clients.end()
    await service.end()
  }
}

async function asking<T>(clients: BenchProcess<unknown>, work: () => Promise<T>) {
  const order = (what: RebuildRequestsOrder) => clients.ask<RebuildRequestsResult>(what)
  await order({ order: 'start' })
  const result = await work()
  const { answers } = await order({ order: 'stop' })
  return { result, answers }
}

function mustBeWhole(records: number, size: PlatformSize): void {
  if (records !== eventCount(size)) throw new Error(`${records} of ${eventCount(size)} records were read`)
}
