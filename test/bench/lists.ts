/**
 * Uncached lists, from the list index and from one statement each: how long one client waits, how many pollers are answered,
 * what they cost ClickHouse, and how much memory and event-loop time the index uses.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { runBenchProcess, startBenchProcess } from './bench-process.ts'
import { seededRandom } from './cold-requests.ts'
import { loadNote } from './kafka/load-note.ts'
import type { ListsFillInput } from './lists-fill.ts'
import type { Held, ListsIndexInput, ListsIndexReady } from './lists-index.ts'
import type { PollersRequest, PollersResult } from './lists-pollers.ts'
import { listRequests } from './lists-requests.ts'
import type { ListsServiceAnswer, ListsServiceInput, ListsServiceReady, Served } from './lists-service.ts'
import { type BenchReport, type Figure, figureOf, type Target } from './report.ts'
import { quantile, ratioOfPairs, summarize } from './samples.ts'
import type { Workspace } from './workspace.ts'

const campaigns = 400_000
const pledges = 2_000_000
const categories = 15
const changes = [0, 100, 5_000]
const refreshRounds = 8
const changesPerSecond = 50
// This many seconds of changes, so that pollers of the last minute get rows.
const changedForMs = 15_000
const requestsPerKind = 60
const warmUps = 3
const pollers = 1_000
// With 1,000 pollers, none would be answered in time: each poller's list statement is queued before the first one's rows.
// This number is enough to keep ClickHouse at its limit all the time.
const sqlPollers = 50
const pollMs = 20_000
const msMax = 240_000
const indexBytesMax = 60e6
const listMsMax = 10
const seed = 20_180_101

export async function benchLists(workspace: Workspace): Promise<BenchReport> {
  const directory = workspace.directory('lists')
  const fill: ListsFillInput = { directory, campaigns, pledges }
  await runBenchProcess({ script: 'lists-fill.ts', input: fill, msMax })
  const input: ListsIndexInput = { directory, campaigns, changes, rounds: refreshRounds }
  const flags = ['--max-semi-space-size=64', '--expose-gc']
  const index = await runBenchProcess<ListsIndexReady>({ script: 'lists-index.ts', input, msMax, flags })
  const figures = [...indexFigures(index), ...(await servedFigures(directory))]
  return {
    bench: 'lists',
    notes: [
      `${campaigns} campaigns, every list a different one. Held: the longest time that the event loop was blocked, which`,
      `includes delays by other work on the machine. Over HTTP, ${changesPerSecond} campaigns change per second; a ratio is how`,
      'many times slower one statement per list is. Pollers request changes since a moment of the last minute, in a loop.',
      loadNote(),
    ],
    figures,
  }
}

function indexFigures({ load, firstLists, loadedBytes, changedBytes, refreshes }: ListsIndexReady): Figure[] {
  return [
    { name: 'index, memory', value: loadedBytes / 1e6, unit: 'MB', target: { atMost: indexBytesMax / 1e6 } },
    { name: 'index, memory after changes', value: changedBytes / 1e6, unit: 'MB' },
    ...heldFigures('index, load', [load]),
    ...heldFigures('index, first list in each order', firstLists),
    ...refreshes.flatMap(({ changes, refresh, nextList }) => [
      ...heldFigures(`index, refresh with ${changes} changes`, refresh),
      ...heldFigures(`index, next list after ${changes} changes`, nextList),
    ]),
  ]
}

function heldFigures(name: string, all: readonly Held[]): Figure[] {
  return [
    figureOf(name, 'ms', summarize(all.map(({ ms }) => ms))),
    figureOf(`${name}, held`, 'ms', summarize(all.map(({ heldMs }) => heldMs))),
    figureOf(`${name}, CPU of the loop`, 'ms', summarize(all.map(({ cpuMs }) => cpuMs))),
  ]
}

async function servedFigures(directory: string): Promise<Figure[]> {
  const input: ListsServiceInput = { directory, campaigns, changesPerSecond }
  const service = await startBenchProcess<ListsServiceReady>({ script: 'lists-service.ts', input, msMax })
  const load = await startBenchProcess({ script: 'lists-pollers.ts', input: {}, msMax })
  const { index, sql } = service.ready

  async function poll({ apiUrl, headers }: Served, count: number): Promise<Polled> {
    await service.ask<ListsServiceAnswer>({})
    const request: PollersRequest = { apiUrl, headers, pollers: count, ms: pollMs }
    const result = await load.ask<PollersResult>(request)
    return { ...result, ...(await service.ask<ListsServiceAnswer>({})) }
  }

  try {
    await delay(changedForMs)
    const latencies = await latencyFigures(service.ready)
    // The statements come last: requests that still wait for ClickHouse are abandoned.
    const byIndex = await poll(index, pollers)
    const bySql = await poll(sql, sqlPollers)
    return [...latencies, ...pollFigures(byIndex, bySql)]
  } finally {
    await load.end()
    await service.end()
  }
}

async function latencyFigures({ index, sql }: ListsServiceReady): Promise<Figure[]> {
  const size = { campaigns, categories, count: requestsPerKind + warmUps, now: Date.now() }
  const requests = listRequests(size, seededRandom(seed))
  const kinds = [
    ['list of recent changes', requests.recent],
    ['filtered list', requests.filtered],
    ['list of all', requests.whole],
    ['list of all, deep page', requests.deep],
  ] as const
  const figures: Figure[] = []
  for (const [name, paths] of kinds) {
    const samples: { index: number; sql: number }[] = []
    for (const path of paths) {
      samples.push({ index: await millisecondsOf(index, path), sql: await millisecondsOf(sql, path) })
    }
    const measured = samples.slice(warmUps)
    const byIndex = measured.map(sample => sample.index)
    const bySql = measured.map(sample => sample.sql)
    figures.push(
      ...latency(`${name}, index`, byIndex, { atMost: listMsMax }),
      ...latency(`${name}, SQL`, bySql),
      figureOf(`${name}, ratio`, '', ratioOfPairs(bySql, byIndex)),
    )
  }
  return figures
}

function latency(name: string, ms: readonly number[], target?: Target): Figure[] {
  return [
    figureOf(`${name}, p50`, 'ms', summarize(ms), target),
    { name: `${name}, p99`, value: quantile(ms, 0.99), unit: 'ms' },
  ]
}

async function millisecondsOf({ apiUrl, headers }: Served, path: string): Promise<number> {
  const startedMs = performance.now()
  const response = await fetch(apiUrl + path, { headers, signal: AbortSignal.timeout(msMax) })
  await response.arrayBuffer()
  const elapsedMs = performance.now() - startedMs
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
  return elapsedMs
}

type Polled = PollersResult & ListsServiceAnswer

function pollFigures(byIndex: Polled, bySql: Polled): Figure[] {
  const rate = ({ latenciesMs, seconds }: Polled) => latenciesMs.length / seconds
  const figures = (name: string, polled: Polled): Figure[] => {
    const { seconds, statements, cpuMs, heldMs, latenciesMs } = polled
    const requests = latenciesMs.length
    return [
      { name, value: rate(polled), unit: 'requests/s' },
      { name: `${name}, statements`, value: statements / seconds, unit: '/s' },
      { name: `${name}, statements a request`, value: statements / requests, unit: '' },
      { name: `${name}, CPU of the process a request`, value: cpuMs / requests, unit: 'ms' },
      { name: `${name}, held`, value: heldMs, unit: 'ms' },
      ...latency(name, latenciesMs),
    ]
  }
  return [
    ...figures(`${pollers} pollers, index`, byIndex),
    ...figures(`${sqlPollers} pollers, SQL`, bySql),
    { name: 'pollers, ratio of requests/s', value: rate(byIndex) / rate(bySql), unit: '' },
  ]
}
