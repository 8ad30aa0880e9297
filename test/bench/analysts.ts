/**
 * How much slower the API answers while analysts run heavy queries. Uncached requests are sent one at a time, in alternating
 * rounds: on an idle server, and under the worst queries that the data teams' user may send.
 */
import { analystUser } from '../../services/clickhouse-server/configuration.ts'
import type { AnalystsInput, AnalystsReady } from './analysts-service.ts'
import { startBenchProcess } from './bench-process.ts'
import { coldPaths, seededRandom } from './cold-requests.ts'
import { type BenchReport, type Figure, figureOf } from './report.ts'
import { quantile, summarize } from './samples.ts'
import type { Workspace } from './workspace.ts'

const size = { campaigns: 100_000, pledges: 2_000_000 }
const categories = 15
const rounds = 3
const requestsPerRound = 200
const warmUps = 50
const analystsAtOnce = 20
const startMsMax = 240_000
const answerMsMax = 30_000
const seed = 20_180_101

// Each would take minutes without the limits.
const worstQueries = [
  'SELECT count(), max(concat(a.title, b.title)) FROM crowdfunding.campaigns AS a CROSS JOIN crowdfunding.campaigns AS b',
  'SELECT * FROM crowdfunding.campaigns ORDER BY cityHash64(description), title FORMAT Null',
  'SELECT campaign_id, groupArray(description) FROM crowdfunding.campaigns GROUP BY campaign_id ORDER BY sipHash64(campaign_id) FORMAT Null',
  'SELECT max(sipHash64(number)) FROM numbers(10000000000)',
]

export async function benchAnalysts(workspace: Workspace): Promise<BenchReport> {
  const input: AnalystsInput = { directory: workspace.directory('analysts'), ...size }
  const service = await startBenchProcess<AnalystsReady>({
    script: 'analysts-service.ts',
    input,
    msMax: startMsMax,
  })
  try {
    const { ready } = service
    const paths = requestPaths()
    for (let n = 0; n < warmUps; n++) await millisecondsOf(ready, paths)
    const quiet: number[][] = []
    const busy: number[][] = []
    for (let round = 0; round < rounds; round++) {
      quiet.push(await samplesOf(ready, paths))
      const load = startAnalysts(ready.sqlUrl)
      busy.push(await samplesOf(ready, paths))
      await load.stop()
    }
    return {
      bench: 'analysts',
      notes: [
        `${size.campaigns} campaigns and ${size.pledges} pledges. Uncached details and lists, one at a time, ${requestsPerRound} in each of`,
        `${rounds} alternating rounds: without analysts, and with ${analystsAtOnce} analysts that repeat cross joins and full sorts.`,
        `This process ${process.getuid?.() === 0 ? 'may' : 'may not'} set the priority of threads.`,
      ],
      figures: figures(quiet, busy),
    }
  } finally {
    await service.end()
  }
}

function figures(quiet: readonly number[][], busy: readonly number[][]): Figure[] {
  const p99 = (samples: readonly number[][]) => summarize(samples.map(round => quantile(round, 0.99)))
  const p50 = (samples: readonly number[][]) => summarize(samples.map(round => quantile(round, 0.5)))
  const ratio = quantile(busy.flat(), 0.99) / quantile(quiet.flat(), 0.99)
  return [
    figureOf('quiet, p50', 'ms', p50(quiet)),
    figureOf('quiet, p99', 'ms', p99(quiet)),
    figureOf('under analysts, p50', 'ms', p50(busy)),
    figureOf('under analysts, p99', 'ms', p99(busy)),
    { name: 'p99 under analysts / quiet, all turns', value: ratio, unit: '', target: { atMost: 2 } },
  ]
}

/** Alternates details and lists. Each is requested once. */
function* requestPaths(): Generator<string> {
  const count = rounds * 2 * requestsPerRound + warmUps
  const { details, lists } = coldPaths({ campaigns: size.campaigns, categories, count }, seededRandom(seed))
  for (let n = 0; ; n++) {
    yield details[n] ?? ''
    yield lists[n] ?? ''
  }
}

async function samplesOf(ready: AnalystsReady, paths: Generator<string>): Promise<number[]> {
  const samples: number[] = []
  for (let n = 0; n < requestsPerRound; n++) samples.push(await millisecondsOf(ready, paths))
  return samples
}

async function millisecondsOf({ apiUrl, headers }: AnalystsReady, paths: Generator<string>): Promise<number> {
  const path = paths.next().value as string
  const startedMs = performance.now()
  const response = await fetch(apiUrl + path, { headers, signal: AbortSignal.timeout(answerMsMax) })
  await response.arrayBuffer()
  const elapsedMs = performance.now() - startedMs
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
  return elapsedMs
}

/** Analysts that send one query after the other until they are stopped. Failed queries are ignored. */
function startAnalysts(sqlUrl: string): { stop(): Promise<void> } {
  const over = new AbortController()
  async function keepAsking(analyst: number): Promise<void> {
    for (let n = analyst; !over.signal.aborted; n++) {
      const body = worstQueries[n % worstQueries.length] ?? ''
      const request = { method: 'POST', body, signal: over.signal }
      const answer = await fetch(`${sqlUrl}/?user=${analystUser}`, request).catch(() => undefined)
      await answer?.arrayBuffer().catch(() => undefined)
    }
  }
  const asking = Promise.all(Array.from({ length: analystsAtOnce }, (_, analyst) => keepAsking(analyst)))
  return {
    async stop() {
      over.abort()
      await asking
    },
  }
}
