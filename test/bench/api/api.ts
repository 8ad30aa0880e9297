/**
 * Cached answers of the API: the real service, with authentication and rate limiter, compared with bare Fastify routes in a
 * separate process that send the same bytes.
 */

import { type BenchProcess, startBenchProcess } from '../bench-process.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { ratioOfPairs, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import type { BareInput, BareReady } from './bare.ts'
import { type LoadResult, load } from './load.ts'
import type { ApiServiceInput, ApiServiceReady, ServerRequest } from './service.ts'

const rounds = 5
const loadMs = 1_500
const warmUpMs = 1_000
const connections = 10
const startMsMax = 60_000
// Node adds these to an answer itself, or computes them.
const serverHeaders = new Set(['connection', 'content-length', 'date', 'keep-alive'])

/** One request that both the service and its ceiling answer. */
interface Subject {
  name: string
  path: string
  headers: Record<string, string>
  status: number
  body: string
  /** The headers of the answer, without those that the server adds. */
  answerHeaders: Record<string, string>
  log: boolean
  /** The target: the rate, as a share of the rate of the bare route. */
  ratioMin: number
}

interface Measured {
  subject: Subject
  service: LoadResult[]
  bare: LoadResult[]
}

type Service = BenchProcess<ApiServiceReady>

export async function benchApi(workspace: Workspace): Promise<BenchReport> {
  const input: ApiServiceInput = { directory: workspace.directory('api') }
  const service: Service = await startBenchProcess({ script: 'api/service.ts', input, msMax: startMsMax })
  try {
    const subjects = await findSubjects(service.ready)
    return report(await measureAll(service, subjects), subjects)
  } finally {
    await service.end()
  }
}

/** Requests each URL once. This fills the cache, and returns the bytes that the ceiling has to send. */
async function findSubjects({ apiUrl, headers }: ApiServiceReady): Promise<Subject[]> {
  const listPath = '/projects?limit=50'
  const list = await get(apiUrl + listPath, headers)
  const first = (JSON.parse(list.body) as { data: { slug: string }[] }).data[0]
  if (!first) throw new Error('the demo platform has no campaigns')
  const detailPath = `/projects/${first.slug}`
  const detail = await get(apiUrl + detailPath, headers)
  const page = { path: listPath, headers, status: 200, ...list, log: false, ratioMin: 0.85 }
  const { 'content-type': _, ...headersOf304 } = list.answerHeaders
  const ifNoneMatch = { ...headers, 'if-none-match': list.answerHeaders.etag ?? '' }
  return [
    { ...page, name: 'list page of 50' },
    { ...page, name: 'list page of 50, requests logged', log: true, ratioMin: 0.75 },
    {
      ...page,
      name: '304',
      status: 304,
      body: '',
      answerHeaders: headersOf304,
      headers: ifNoneMatch,
      ratioMin: 0.8,
    },
    { ...page, name: 'detail', path: detailPath, ...detail, ratioMin: 0.85 },
  ]
}

async function get(
  url: string,
  headers: Record<string, string>,
): Promise<Pick<Subject, 'body' | 'answerHeaders'>> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(10_000) })
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`)
  const answerHeaders = [...response.headers].filter(([name]) => !serverHeaders.has(name))
  return { body: await response.text(), answerHeaders: Object.fromEntries(answerHeaders) }
}

async function measureAll(service: Service, subjects: readonly Subject[]): Promise<Measured[]> {
  const routes = subjects.map(({ status, body, answerHeaders }, index) => {
    return { path: `/${index}`, status, body, headers: answerHeaders }
  })
  const input: BareInput = { routes }
  const bare = await startBenchProcess<BareReady>({ script: 'api/bare.ts', input, msMax: startMsMax })
  const measured = subjects.map((subject): Measured => ({ subject, service: [], bare: [] }))

  async function run(index: number, ms: number): Promise<{ service: LoadResult; bare: LoadResult }> {
    const { path, headers, status, log } = subjects[index] as Subject
    const asked: ServerRequest = { log }
    await service.ask(asked)
    const ofBare = { url: `${bare.ready.url}/${index}`, headers: {}, status, connections, ms }
    const ofService = { url: service.ready.apiUrl + path, headers, status, connections, ms }
    return { bare: await load(ofBare), service: await load(ofService) }
  }

  try {
    for (const index of subjects.keys()) await run(index, warmUpMs)
    for (let round = 0; round < rounds; round++) {
      for (const [index, { service, bare }] of measured.entries()) {
        const result = await run(index, loadMs)
        service.push(result.service)
        bare.push(result.bare)
      }
    }
    return measured
  } finally {
    await bare.end()
  }
}

function report(measured: Measured[], subjects: Subject[]): BenchReport {
  const pageBytes = Buffer.byteLength(subjects[0]?.body ?? '')
  return {
    bench: 'api',
    notes: [
      `Cached answers over HTTP on ${connections} connections without pipelining; a list page is ${pageBytes} bytes.`,
      `${rounds} rounds, alternating with a bare Fastify route that sends the same body and headers; the load is made in a process of its own.`,
    ],
    figures: measured.flatMap(figuresOf),
  }
}

function figuresOf({ subject: { name, ratioMin }, service, bare }: Measured): Figure[] {
  const rates = (loads: LoadResult[]) => loads.map(({ requests, seconds }) => requests / seconds)
  const ratio = ratioOfPairs(rates(service), rates(bare))
  return [
    figureOf(name, 'requests/s', summarize(rates(service))),
    figureOf(`${name}, bare`, 'requests/s', summarize(rates(bare))),
    figureOf(`${name}, ratio`, '', ratio, { atLeast: ratioMin }),
  ]
}
