/**
 * Uncached answers while campaigns change: how long one client waits, how many pollers are answered, and what they cost; and how long
 * the fold of the whole platform took before. What the list index takes to load and hold is in the growth bench.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchProcess, startBenchProcess } from '../bench-process.ts'
import { type BenchReport, type Figure, figureOf, type Target } from '../report.ts'
import { quantile, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { type PollersResult, poll } from './pollers.ts'
import { millisecondsOf, uncachedRequests } from './requests.ts'
import type {
  ListsServiceAnswer,
  ListsServiceInput,
  ListsServiceReady,
  ListsServiceRequest,
} from './service.ts'

const campaigns = 400_000
const pledges = 10_000_000
const changesPerSecond = 50
// So long that what pollers of the last minute get are these changes, and not the fill before them.
const changedForMs = 75_000
const requestsPerKind = 60
const warmUps = 3
const pollers = 1_000
const pollMs = 20_000
const statistics = 10
// The statistics live for 300 s, and are computed at most a tenth of that before their end.
const statisticsPeriodSeconds = 270
const msMax = 600_000
const listTargets = { p50: { atMost: 8 }, p99: { atMost: 40 } }

export async function benchLists(workspace: Workspace): Promise<BenchReport> {
  const input: ListsServiceInput = {
    directory: workspace.directory('lists'),
    campaigns,
    pledges,
    changesPerSecond,
  }
  const service = await startBenchProcess<ListsServiceReady>({ script: 'lists/service.ts', input, msMax })
  return {
    bench: 'lists',
    notes: [
      `${campaigns} campaigns, of which ${changesPerSecond} change per second, and ${pledges} pledges; every list and detail a different one, over`,
      'HTTP. Pollers request changes since a moment of the last minute, in a loop.',
    ],
    figures: await servedFigures(service).finally(service.end),
  }
}

async function servedFigures({ ready, ask }: BenchProcess<ListsServiceReady>): Promise<Figure[]> {
  const measured = (request: ListsServiceRequest) => ask<ListsServiceAnswer>(request)
  await delay(changedForMs)
  const latencies = await latencyFigures(ready)
  await measured({})
  const result = await poll(ready, { pollers, ms: pollMs })
  const polled = pollFigures({ ...result, ...(await measured({})) })
  const computed = statisticsFigure(await measured({ statistics }))
  const name = `folded whole, in ${ready.foldStatements} statements`
  const folded: Figure = { name, value: ready.foldSeconds, unit: 's', target: { atMost: 7 } }
  return [folded, ...latencies, ...polled, computed]
}

async function latencyFigures(ready: ListsServiceReady): Promise<Figure[]> {
  const count = requestsPerKind + warmUps
  const { recent, filtered, whole, deep, details } = uncachedRequests({ campaigns, count })
  const kinds = [
    ['list of recent changes', recent, listTargets],
    ['filtered list', filtered, listTargets],
    ['list of all', whole, listTargets],
    ['list of all, deep page', deep, listTargets],
    ['detail', details, { p50: { atMost: 4.5 } }],
    ['stats, computed ahead', Array.from({ length: count }, () => '/stats'), { p50: { atMost: 5 } }],
  ] as const
  const figures: Figure[] = []
  for (const [name, paths, targets] of kinds) {
    const samples: number[] = []
    for (const path of paths) samples.push(await millisecondsOf(ready, path))
    figures.push(...latency(name, samples.slice(warmUps), targets))
  }
  return figures
}

function latency(name: string, ms: readonly number[], target: { p50?: Target; p99?: Target }): Figure[] {
  return [
    figureOf(`${name}, p50`, 'ms', summarize(ms), target.p50),
    {
      name: `${name}, p99`,
      value: quantile(ms, 0.99),
      unit: 'ms',
      ...(target.p99 && { target: target.p99 }),
    },
  ]
}

function pollFigures(polled: PollersResult & ListsServiceAnswer): Figure[] {
  const { seconds, cpuMs, latenciesMs } = polled
  const requests = latenciesMs.length
  const name = `${pollers} pollers`
  return [
    { name, value: requests / seconds, unit: 'requests/s', target: { atLeast: 1_200 } },
    {
      name: `${name}, CPU of the process a request`,
      value: cpuMs / requests,
      unit: 'ms',
      target: { atMost: 0.5 },
    },
    ...latency(name, latenciesMs, { p99: { atMost: 1_500 } }),
  ]
}

/** What the computation ahead of requests costs once in each cache period. */
function statisticsFigure({ statisticsCpuSeconds }: ListsServiceAnswer): Figure {
  const eachSeconds = statisticsCpuSeconds / statistics
  return {
    name: 'stats, share of a core at ten times the pledges (derived)',
    value: (100 * 10 * eachSeconds) / statisticsPeriodSeconds,
    unit: '%',
    target: { atMost: 2 },
  }
}
