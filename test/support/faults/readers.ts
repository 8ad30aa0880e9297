/**
 * Readers that ask the API all the time, of all query processes: lists, walks, details, statistics, wrong requests and wrong
 * keys. Every answer is judged.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Project, ProjectDetail } from '../../../contracts/api/schemas.ts'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { projectDetailBodySchema } from '../../../services/query/endpoints/project.ts'
import { projectListBodySchema } from '../../../services/query/endpoints/projects.ts'
import { statsBodySchema } from '../../../services/query/endpoints/stats.ts'
import { keyHeaders } from '../query/app.ts'
import { intBetween, pick, pickWeighted, type Random } from '../runner/random.ts'
import { type ApiClient, type Asked, snapshotOf } from './api-client.ts'
import { categories } from './campaign-histories.ts'
import type { Judge } from './judge.ts'
import type { Traffic } from './traffic.ts'

export interface ReadersOptions {
  apiUrls: readonly string[]
  client: ApiClient
  judge: Judge
  traffic: Traffic
  /** Keys that are active all the time. There are enough of them that no limit is reached. */
  keys: readonly Credentials[]
  /** Makes the choices of each reader. */
  random: (reader: number) => Random
  /** How many times longer they pause. */
  slowness: number
}

export interface Readers {
  stop(): Promise<void>
}

const readersPerProcess = 2
const pauseMs = 60
const walkLimit = 100
const sorts = ['newest', 'ending_soon', 'most_funded', 'most_backed']
const statuses = ['LIVE', 'FUNDED', 'FAILED', 'CANCELLED']
const wrongQueries = [
  'limit=101',
  'limit=0',
  'offset=-1',
  'status=DRAFT',
  'sort=oldest',
  'updated_since=today',
]

export function startReaders(options: ReadersOptions): Readers {
  const { apiUrls, random } = options
  const stopping = new AbortController()
  const readers = Array.from({ length: readersPerProcess * apiUrls.length }, (_, n) => {
    const apiUrl = apiUrls[n % apiUrls.length] ?? ''
    return read({ ...options, apiUrl, random: random(n) }, stopping.signal)
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all(readers)
    },
  }
}

interface Reader extends Omit<ReadersOptions, 'apiUrls' | 'random'> {
  apiUrl: string
  random: Random
}

async function read(reader: Reader, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const request = pickWeighted(reader.random, [
      [readPage, 8],
      [readDetail, 8],
      [readStats, 2],
      [walk, 1],
      [askWrongly, 2],
    ] as const)
    // An unreadable answer is a fault, but the reader continues.
    await request(reader).catch(error => reader.client.report(String(error)))
    await delay(reader.slowness * pauseMs)
  }
}

async function readPage(reader: Reader): Promise<void> {
  const { random } = reader
  const status = pick(random, ['', ...statuses])
  const category = pick(random, ['', '', ...categories])
  const query = new URLSearchParams({
    ...(status && { status }),
    ...(category && { category }),
    sort: pick(random, sorts),
    limit: String(pick(random, [1, 10, 20])),
    offset: String(pick(random, [0, 0, 10, 40])),
  })
  const asked = await get(reader, `/projects?${query}`)
  if (asked?.response.status === 200) judgePage(reader, asked, category)
}

/** The campaigns of a page, each judged. */
function judgePage({ client, judge }: Reader, { body, moment }: Asked, category = ''): Project[] {
  const { data, pagination } = projectListBodySchema.parse(body)
  const { total, limit, offset, has_more } = pagination
  for (const project of data) {
    client.report(judge.shown(project, moment))
    if (category && project.category !== category) client.report(`${project.id} is not in ${category}`)
  }
  if (has_more !== offset + limit < total) client.report(`has_more is ${has_more} at ${offset} of ${total}`)
  if (data.length > Math.max(0, Math.min(limit, total - offset))) client.report('a page is too long')
  return data
}

/** All pages of one snapshot. If the snapshot changes, the walk is given up. */
async function walk(reader: Reader): Promise<void> {
  const { client, judge } = reader
  const projects: Project[] = []
  let first: Asked | undefined
  for (let offset = 0; ; offset += walkLimit) {
    const asked = await get(reader, `/projects?limit=${walkLimit}&offset=${offset}`)
    if (asked?.response.status !== 200) return
    first ??= asked
    if (snapshotOf(asked) !== snapshotOf(first)) return
    projects.push(...judgePage(reader, asked))
    const { pagination } = projectListBodySchema.parse(asked.body)
    if (pagination.total !== projectListBodySchema.parse(first.body).pagination.total) {
      client.report('the total moved within a snapshot')
    }
    if (pagination.has_more) continue
    if (projects.length > pagination.total) client.report(`${projects.length} rows of ${pagination.total}`)
    break
  }
  const ids = new Set(projects.map(({ id }) => id))
  if (ids.size !== projects.length) client.report('a walk met a campaign twice')
  const left = judge.certainlyPublic(first.moment.readSince).filter(id => !ids.has(id))
  if (left.length > 0) client.report(`a walk left out ${left.slice(0, 3)}, which are public`)
  if (!isNewestFirst(projects)) client.report('a walk is out of order')
}

function isNewestFirst(projects: readonly Project[]): boolean {
  const key = ({ launch_date, id }: Project) => ({ at: launch_date ?? '', id })
  return projects.every((project, index) => {
    const previous = projects[index - 1]
    if (!previous) return true
    const [a, b] = [key(previous), key(project)]
    return a.at > b.at || (a.at === b.at && a.id < b.id)
  })
}

async function readDetail(reader: Reader): Promise<void> {
  const { client, judge, traffic, random } = reader
  const histories = [...traffic.histories()]
  const history = histories[intBetween(random, 0, histories.length - 1)]
  if (!history) return
  const asked = await get(reader, `/projects/slug-${history.id}`, [200, 404])
  if (asked?.response.status === 200) {
    const { data }: { data: ProjectDetail } = projectDetailBodySchema.parse(asked.body)
    if (data.id !== history.id) client.report(`${data.id} was shown for ${history.id}`)
    client.report(judge.shown(data, asked.moment))
  } else if (asked?.response.status === 404) {
    // It may have waited for the answer to an earlier request.
    const { finishedAt, startedAt } = asked.moment
    client.report(judge.missing(history.id, { readSince: startedAt - 15_000, finishedAt }))
  }
}

/** Statistics agree with themselves, and count no fewer campaigns than there certainly are: a shard may be away. */
async function readStats(reader: Reader): Promise<void> {
  const asked = await get(reader, '/stats')
  if (asked?.response.status !== 200) return
  const { data } = statsBodySchema.parse(asked.body)
  const inCategories = data.categories.reduce((sum, { project_count }) => sum + project_count, 0)
  const [cents, pledges] = [Math.round(100 * data.total_raised), data.total_pledges]
  const average = pledges === 0 ? 0 : Math.floor((2 * cents + pledges) / (2 * pledges)) / 100
  // Backers are counted in the ledger, which is ahead of the campaigns by one fold. So only their number may differ.
  const isReconciled =
    inCategories === data.projects_total &&
    data.projects_live + data.projects_funded <= data.projects_total &&
    data.average_pledge === average
  if (!isReconciled) reader.client.report(`statistics do not reconcile: ${JSON.stringify(data)}`)
  const least = reader.judge.certainlyPublic(asked.moment.readSince).length
  if (data.projects_total < least)
    reader.client.report(`statistics of ${data.projects_total} campaigns, and ${least} are public`)
}

/** Requests that are refused, and how: api.md and design.md, section 8. */
async function askWrongly({ apiUrl, client, keys, random }: Reader): Promise<void> {
  const credentials = pick(random, keys)
  const headers = keyHeaders(credentials)
  const wrongKey = keyHeaders(
    pick(random, [
      { ...credentials, secret: 'wrong' },
      { ...credentials, key: 'pv_live_unknown' },
    ]),
  )
  const [path, status, init] = pick(random, [
    [`/projects?${pick(random, wrongQueries)}`, 400, { headers }],
    ['/projects', 401, { headers: wrongKey }],
    ['/stats', 401, {}],
    ['/nowhere', 404, { headers }],
    ['/projects', 405, { headers, method: 'POST' }],
    ['/projects', 204, { method: 'OPTIONS' }],
  ] as const)
  // Too many refused requests are refused for that reason.
  await client.ask(apiUrl + path, status === 401 || status === 204 ? [status, 429] : [status], init)
}

function get(
  { apiUrl, client, keys, random }: Reader,
  path: string,
  expected: readonly number[] = [200],
): Promise<Asked | undefined> {
  return client.ask(apiUrl + path, expected, { headers: keyHeaders(pick(random, keys)) })
}
