/**
 * Cold answers: how long one client waits for uncached answers over HTTP, at 400 k campaigns and 10 M pledges, with one
 * request at a time.
 */
import { randomOf } from '../../support/runner/random.ts'
import { type BenchProcess, startBenchProcess } from '../bench-process.ts'
import { type BenchReport, type Figure, figureOf, type Target } from '../report.ts'
import { quantile, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { coldPaths } from './cold-requests.ts'
import type { ColdAnswer, ColdInput, ColdReady, ColdRequest } from './cold-service.ts'

const campaigns = 400_000
const pledges = 10_000_000
const categories = 15
const requests = 100
const wholeLists = 20
const statsRequests = 10
const warmUps = 3
// The statistics live for 300 s, and are computed at most a tenth of that before their end.
const statsPeriodSeconds = 270
const startMsMax = 240_000
const answerMsMax = 30_000
const seed = 20_180_101

export async function benchCold(workspace: Workspace): Promise<BenchReport> {
  const input: ColdInput = { directory: workspace.directory('cold'), campaigns, pledges }
  const service = await startBenchProcess<ColdReady>({
    script: 'api/cold-service.ts',
    input,
    msMax: startMsMax,
  })
  try {
    const { loadSeconds, foldSeconds, foldStatements, historySeconds } = service.ready
    const answered = await measure(service)
    const { peakBytes } = await service.ask<ColdAnswer>({ statistics: 0 })
    return {
      bench: 'cold',
      notes: [
        `${campaigns} campaigns with 5 tiers each and ${pledges} pledges; uncached answers over HTTP,`,
        'one at a time. The figure is the median. The spread is that of all requests.',
      ],
      figures: [
        { name: 'ledger loaded', value: loadSeconds, unit: 's' },
        {
          name: `folded whole, in ${foldStatements} statements`,
          value: foldSeconds,
          unit: 's',
          target: { atMost: 7 },
        },
        { name: 'first day of the history', value: historySeconds, unit: 's' },
        ...answered,
        { name: 'peak memory, both processes', value: peakBytes / 1e6, unit: 'MB' },
      ],
    }
  } finally {
    await service.end()
  }
}

async function measure({ ready, ask }: BenchProcess<ColdReady>): Promise<Figure[]> {
  const paths = coldPaths({ campaigns, categories, count: requests + warmUps }, randomOf(seed))
  const stats = Array.from({ length: statsRequests + warmUps }, () => '/stats')
  return [
    ...(await timed(ready, 'list', paths.lists, { atMost: 8 })),
    ...(await timed(ready, 'list of all campaigns', paths.wholeLists.slice(0, wholeLists + warmUps))),
    ...(await timed(ready, 'further page of a list', paths.pages)),
    ...(await timed(ready, 'detail', paths.details, { atMost: 4.5 })),
    ...(await timed(ready, 'stats, computed for the request', stats)),
    ...(await timed({ ...ready, apiUrl: ready.aheadUrl }, 'stats, computed ahead', stats, { atMost: 5 })),
    ...(await statsFigures(request => ask<ColdAnswer>(request))),
  ]
}

/** The share of a core is what the computation ahead of requests costs once in each cache period. */
async function statsFigures(ask: (request: ColdRequest) => Promise<ColdAnswer>): Promise<Figure[]> {
  const before = await ask({ statistics: 0 })
  const after = await ask({ statistics: statsRequests })
  const eachSeconds = (after.cpuSeconds - before.cpuSeconds) / statsRequests
  return [
    { name: 'stats, CPU of ClickHouse for one computation ahead', value: eachSeconds * 1_000, unit: 'ms' },
    {
      name: 'stats, share of a core at ten times the size (derived)',
      value: (100 * 10 * eachSeconds) / statsPeriodSeconds,
      unit: '%',
      target: { atMost: 2 },
    },
  ]
}

/** The median and the 99th percentile, ms. The target is for the median. */
async function timed(
  ready: ColdReady,
  name: string,
  paths: readonly string[],
  target?: Target,
): Promise<Figure[]> {
  const samples: number[] = []
  for (const path of paths) samples.push(await millisecondsOf(ready, path))
  const measured = samples.slice(warmUps)
  return [
    figureOf(`${name}, p50`, 'ms', summarize(measured), target),
    { name: `${name}, p99`, value: quantile(measured, 0.99), unit: 'ms' },
  ]
}

async function millisecondsOf({ apiUrl, headers }: ColdReady, path: string): Promise<number> {
  const startedMs = performance.now()
  const response = await fetch(apiUrl + path, { headers, signal: AbortSignal.timeout(answerMsMax) })
  await response.arrayBuffer()
  const elapsedMs = performance.now() - startedMs
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
  return elapsedMs
}
