/**
 * What a key with many distinct lists costs other keys: how long another key's cold lists take alone, and beside one key and
 * three keys that each send their 120 requests of a minute at once. Each of those asks for another list of all campaigns.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { runBenchProcess, startBenchProcess } from './bench-process.ts'
import { loadNote } from './kafka/load-note.ts'
import type { KeysServiceInput, KeysServiceReady, ServedKeys } from './keys-service.ts'
import type { ListsFillInput } from './lists-fill.ts'
import { type BenchReport, type Figure, figureOf } from './report.ts'
import { quantile, summarize } from './samples.ts'
import type { Workspace } from './workspace.ts'

const campaigns = 400_000
const pledges = 100_000
const greedyKeys = [0, 1, 3]
const requestsPerMinute = 120
const aloneMs = 10_000
const pauseMs = 20
const msMax = 600_000
// Before all changes, so that every campaign is in the list. One millisecond of difference makes it another list.
const beforeAll = Date.UTC(2000, 0)
let lists = 0

export async function benchKeys(workspace: Workspace): Promise<BenchReport> {
  const directory = workspace.directory('keys')
  const fill: ListsFillInput = { directory, campaigns, pledges }
  await runBenchProcess({ script: 'lists-fill.ts', input: fill, msMax })
  const input: KeysServiceInput = { directory, keys: 1 + Math.max(...greedyKeys) }
  const service = await startBenchProcess<KeysServiceReady>({ script: 'keys-service.ts', input, msMax })
  const figures: Figure[] = []
  try {
    for (const [name, served] of Object.entries(service.ready) as [string, ServedKeys][]) {
      for (const greedy of greedyKeys)
        figures.push(...(await measure(`${nameOf(name)}, beside ${greedy} keys`, served, greedy)))
    }
  } finally {
    await service.end()
  }
  return {
    bench: 'keys',
    notes: [
      `${campaigns} campaigns. One key asks for what changed recently, a list that no cache has, one after the other. Beside it`,
      `each of the other keys sends ${requestsPerMinute} requests at once, each for another list of all campaigns at any page. It is`,
      'measured until these are answered. In turn is the default; first come is the same without turns of keys.',
      loadNote(),
    ],
    figures,
  }
}

const nameOf = (name: string) => (name === 'inTurn' ? 'in turn' : 'first come')

async function measure(name: string, { apiUrl, headers }: ServedKeys, greedy: number): Promise<Figure[]> {
  const [other = {}, ...others] = headers
  let isOver = false
  const startedMs = performance.now()
  const floods = others.slice(0, greedy).flatMap(each =>
    Array.from({ length: requestsPerMinute }, () => {
      const offset = Math.floor(Math.random() * campaigns)
      return ask(
        `${apiUrl}/projects?offset=${offset}&updated_since=${new Date(beforeAll + lists++).toISOString()}`,
        each,
        // A request that waits too long for its turn is refused.
        [500],
      )
    }),
  )
  const over = (greedy === 0 ? delay(aloneMs) : Promise.all(floods)).finally(() => {
    isOver = true
  })
  const latenciesMs: number[] = []
  while (!isOver) {
    const sinceMs = Date.now() - 5_000 - lists++
    latenciesMs.push(await ask(`${apiUrl}/projects?updated_since=${new Date(sinceMs).toISOString()}`, other))
    await delay(pauseMs)
  }
  await over
  return [
    figureOf(`${name}, another key, p50`, 'ms', summarize(latenciesMs)),
    { name: `${name}, another key, p99`, value: quantile(latenciesMs, 0.99), unit: 'ms' },
    { name: `${name}, another key, longest`, value: Math.max(...latenciesMs), unit: 'ms' },
    { name: `${name}, until all are answered`, value: (performance.now() - startedMs) / 1000, unit: 's' },
  ]
}

/** How long the answer took, ms. Throws on any status but 200 and `others`. */
async function ask(url: string, headers: Record<string, string>, others: number[] = []): Promise<number> {
  const startedMs = performance.now()
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(msMax) })
  await response.arrayBuffer()
  if (![200, ...others].includes(response.status)) throw new Error(`${url} answered ${response.status}`)
  return performance.now() - startedMs
}
