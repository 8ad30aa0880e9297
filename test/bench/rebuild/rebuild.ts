/**
 * Rebuild: how fast the next generation is made beside the current one, compared with a ceiling that only reads and decodes the same
 * journal; how much memory it takes; and how much slower the API answers meanwhile.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { runBenchProcess, startBenchProcess } from '../bench-process.ts'
import type { IngestRunInput, IngestRunResult } from '../ingest/run.ts'
import type { PlatformSize } from '../platform/platform.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { quantile, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { campaignVersions, eventCount } from './history.ts'
import { type Answer, alternating, askWhile } from './requests.ts'
import type { RebuildRun, RebuildServiceInput, RebuildServiceReady } from './service.ts'

/** The size that the targets are for. */
export const rebuildSize: PlatformSize = { campaigns: 400_000, pledges: 10_000_000 }

const requestsPerSecond = 10
const beforeMs = 60_000
const msMax = 3_600_000
const ratioMin = 0.6

export async function benchRebuild(workspace: Workspace, size: PlatformSize): Promise<BenchReport> {
  const directory = workspace.directory('rebuild')
  const measured = await serve({ directory, ...size })
  const input: IngestRunInput = { kind: 'ceiling', directory }
  const ceiling = await runBenchProcess<IngestRunResult>({ script: 'ingest/run.ts', input, msMax })
  mustBeWhole(ceiling.records, size)
  return {
    bench: 'rebuild',
    notes: [
      `${size.campaigns} campaigns in ${campaignVersions} versions each and ${size.pledges} pledges in one: ${eventCount(size)} events, in the embedded form`,
      'with its default settings, journal and tables in one process with the API. No events arrive meanwhile, and the rebuild left',
      'every campaign as it was. The ceiling: the same journal only read and decoded.',
      `Clients request ${requestsPerSecond} uncached lists and details per second. Times count from when each request was due.`,
    ],
    figures: figuresOf(eventCount(size), ceiling, measured),
  }
}

interface Measured {
  ready: RebuildServiceReady
  run: RebuildRun
  answersBefore: Answer[]
  answers: Answer[]
}

async function serve(input: RebuildServiceInput): Promise<Measured> {
  const service = await startBenchProcess<RebuildServiceReady>({ script: 'rebuild/service.ts', input, msMax })
  const { apiUrl, headers } = service.ready
  const { campaigns } = input
  const load = { paths: alternating(campaigns), perSecond: requestsPerSecond }
  try {
    const before = await askWhile({ apiUrl, headers }, load, () => delay(beforeMs))
    const during = await askWhile({ apiUrl, headers }, load, () => service.ask<RebuildRun>({}))
    mustBeWhole(during.result.records, input)
    return {
      ready: service.ready,
      run: during.result,
      answersBefore: before.answers,
      answers: during.answers,
    }
  } finally {
    await service.end()
  }
}

function mustBeWhole(records: number, size: PlatformSize): void {
  if (records !== eventCount(size)) throw new Error(`${records} of ${eventCount(size)} records were read`)
}

function figuresOf(events: number, ceiling: IngestRunResult, measured: Measured): Figure[] {
  const { ready, run, answersBefore, answers } = measured
  const refused = [...answersBefore, ...answers].filter(({ isAnswered }) => !isAnswered).length
  const p99 = (some: readonly Answer[]) =>
    quantile(
      some.map(({ ms }) => ms),
      0.99,
    )
  return [
    { name: 'projected and folded as it came', value: events / ready.drainSeconds, unit: 'records/s' },
    { name: 'ceiling', value: events / ceiling.seconds, unit: 'records/s' },
    { name: 'rebuild', value: events / run.seconds, unit: 'records/s' },
    {
      name: 'rebuild / ceiling',
      value: ceiling.seconds / run.seconds,
      unit: '',
      target: { atLeast: ratioMin },
    },
    { name: 'memory, peak before it', value: ready.peakBytes / 1e6, unit: 'MB' },
    { name: 'memory, peak', value: run.peakBytes / 1e6, unit: 'MB' },
    { name: 'answers other than 200', value: refused, unit: '', target: { atMost: 0 } },
    ...latency('before', answersBefore),
    ...latency('while it rebuilds', answers),
    {
      name: 'p99 while it rebuilds / before',
      value: p99(answers) / p99(answersBefore),
      unit: '',
      target: { atMost: 2 },
    },
  ]
}

function latency(name: string, answers: readonly Answer[]): Figure[] {
  const ms = answers.map(answer => answer.ms)
  return [
    figureOf(`${name}, p50`, 'ms', summarize(ms)),
    { name: `${name}, p99`, value: quantile(ms, 0.99), unit: 'ms' },
  ]
}
