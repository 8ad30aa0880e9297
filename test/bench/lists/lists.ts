/**
 * Uncached lists while campaigns change: how long one client waits, how many pollers are answered, and what they cost. What the list
 * index takes to load and hold is in the growth bench.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { randomOf } from '../../support/runner/random.ts'
import { runBenchProcess, startBenchProcess } from '../bench-process.ts'
import { type BenchReport, type Figure, figureOf, type Target } from '../report.ts'
import { quantile, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import type { ListsFillInput } from './fill.ts'
import type { PollersRequest, PollersResult } from './pollers.ts'
import { listRequests } from './requests.ts'
import type { ListsServiceAnswer, ListsServiceInput, ListsServiceReady } from './service.ts'

const campaigns = 400_000
const pledges = 2_000_000
const categories = 15
const changesPerSecond = 50
// So long that what pollers of the last minute get are these changes, and not the fill before them.
const changedForMs = 75_000
const requestsPerKind = 60
const warmUps = 3
const pollers = 1_000
const pollMs = 20_000
const msMax = 240_000
const listTargets = { p50: { atMost: 8 }, p99: { atMost: 40 } }
const seed = 20_180_101

export async function benchLists(workspace: Workspace): Promise<BenchReport> {
  const directory = workspace.directory('lists')
  const fill: ListsFillInput = { directory, campaigns, pledges }
  await runBenchProcess({ script: 'lists/fill.ts', input: fill, msMax })
  return {
    bench: 'lists',
    notes: [
      `${campaigns} campaigns, of which ${changesPerSecond} change per second; every list a different one, over HTTP. Pollers request changes`,
      'since a moment of the last minute, in a loop. Held: the longest time that the event loop was blocked, which includes delays',
      'by other work on the machine.',
    ],
    figures: await servedFigures(directory),
  }
}

async function servedFigures(directory: string): Promise<Figure[]> {
  const input: ListsServiceInput = { directory, campaigns, changesPerSecond }
  const service = await startBenchProcess<ListsServiceReady>({ script: 'lists/service.ts', input, msMax })
  const load = await startBenchProcess({ script: 'lists/pollers.ts', input: {}, msMax })
  const { apiUrl, headers } = service.ready
  try {
    await delay(changedForMs)
    const latencies = await latencyFigures(service.ready)
    await service.ask<ListsServiceAnswer>({})
    const request: PollersRequest = { apiUrl, headers, pollers, ms: pollMs }
    const result = await load.ask<PollersResult>(request)
    return [...latencies, ...pollFigures({ ...result, ...(await service.ask<ListsServiceAnswer>({})) })]
  } finally {
    await load.end()
    await service.end()
  }
}

async function latencyFigures(ready: ListsServiceReady): Promise<Figure[]> {
  const size = { campaigns, categories, count: requestsPerKind + warmUps, now: Date.now() }
  const requests = listRequests(size, randomOf(seed))
  const kinds = [
    ['list of recent changes', requests.recent],
    ['filtered list', requests.filtered],
    ['list of all', requests.whole],
    ['list of all, deep page', requests.deep],
  ] as const
  const figures: Figure[] = []
  for (const [name, paths] of kinds) {
    const samples: number[] = []
    for (const path of paths) samples.push(await millisecondsOf(ready, path))
    figures.push(...latency(name, samples.slice(warmUps), listTargets))
  }
  return figures
}

function latency(name: string, ms: readonly number[], target: { p50?: Target; p99: Target }): Figure[] {
  return [
    figureOf(`${name}, p50`, 'ms', summarize(ms), target.p50),
    { name: `${name}, p99`, value: quantile(ms, 0.99), unit: 'ms', target: target.p99 },
  ]
}

async function millisecondsOf({ apiUrl, headers }: ListsServiceReady, path: string): Promise<number> {
  const startedMs = performance.now()
  const response = await fetch(apiUrl + path, { headers, signal: AbortSignal.timeout(msMax) })
  await response.arrayBuffer()
  const elapsedMs = performance.now() - startedMs
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
  return elapsedMs
}

function pollFigures(polled: PollersResult & ListsServiceAnswer): Figure[] {
  const { seconds, statements, cpuMs, heldMs, latenciesMs } = polled
  const requests = latenciesMs.length
  const name = `${pollers} pollers`
  return [
    { name, value: requests / seconds, unit: 'requests/s', target: { atLeast: 1_200 } },
    { name: `${name}, statements a request`, value: statements / requests, unit: '' },
    {
      name: `${name}, CPU of the process a request`,
      value: cpuMs / requests,
      unit: 'ms',
      target: { atMost: 0.5 },
    },
    { name: `${name}, held`, value: heldMs, unit: 'ms' },
    ...latency(name, latenciesMs, { p99: { atMost: 1_500 } }),
  ]
}
