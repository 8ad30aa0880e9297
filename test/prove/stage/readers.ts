/**
 * Readers that ask the API all the time, of all query processes: lists, walks, details, statistics, removals, wrong requests and wrong
 * keys. And mirrors: one follows the guide's loop, one is the client. The checker reads every answer.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../../../contracts/api/client.ts'
import type { Project } from '../../../contracts/api/schemas.ts'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { type Place, poll } from '../../simulation/documented-loop.ts'
import { categories } from '../../support/faults/campaign-histories.ts'
import type { Traffic } from '../../support/faults/traffic.ts'
import { keyHeaders } from '../../support/query/app.ts'
import { pick, pickWeighted, type Random } from '../../support/runner/random.ts'
import type { Recorder } from './recorder.ts'
import { inBackground } from './watch.ts'

export interface ReadersOptions {
  processes: number
  recorder: Recorder
  traffic: Traffic
  /** Keys that are active all the time. There are enough of them that no limit is reached. */
  keys: readonly Credentials[]
  random: (...purpose: string[]) => Random
  /** How many times longer they pause. */
  slowness: number
}

export interface Mirror {
  name: string
  copy(): ReadonlyMap<string, Project>
  /** Whether it has read everything up to this moment, and waits for no page. */
  isPast(moment: number): boolean
  stop(): Promise<void>
}

const readersPerProcess = 2
const pauseMs = 60
const walkLimit = 100
// The shortest that the client allows.
const mirrorPauseMs = 1_000
const base = 'http://api.example/api/v1'
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

/** Reads until the signal is aborted. */
export async function startReaders(options: ReadersOptions, signal: AbortSignal): Promise<void> {
  const running = Array.from({ length: readersPerProcess * options.processes }, async (_, n) => {
    const random = options.random('reader', String(n))
    const reader = { ...options, reader: `reader ${n}`, process: n % options.processes, random }
    while (!signal.aborted) {
      const read = pickWeighted<() => Promise<unknown>>(random, [
        [() => ask(reader, pathOfPage(random)), 8],
        [() => ask(reader, `/projects/slug-${pick(random, [...options.traffic.histories()]).id}`), 8],
        [() => ask(reader, '/stats'), 2],
        [() => readWhole(reader), 1],
        [() => askWrongly(reader), 2],
      ])
      await read()
      await delay(options.slowness * pauseMs)
    }
  })
  await Promise.all(running)
}

interface Reader extends Pick<ReadersOptions, 'recorder' | 'keys'> {
  reader: string
  process: number
  random: Random
}

/** All pages of the list, the removals and the statistics. Also the audit of a quiet time. */
export async function readWhole(reader: Reader): Promise<void> {
  for (const resource of ['/projects', '/removals', '/stats']) {
    const query = (offset: number) => (resource === '/stats' ? '' : `?limit=${walkLimit}&offset=${offset}`)
    for (let offset = 0, hasMore = true; hasMore; offset += walkLimit) {
      const response = await ask(reader, `${resource}${query(offset)}`)
      hasMore = response?.status === 200 && JSON.parse(response.body).pagination?.has_more === true
    }
  }
}

function ask({ recorder, keys, random, reader, process }: Reader, path: string) {
  const expected = path.startsWith('/projects/') ? [200, 404] : [200]
  const credentials = pick(random, keys)
  return recorder.ask({ reader, process, path, expected, credentials, isConditional: random() < 0.5 })
}

function pathOfPage(random: Random): string {
  const status = pick(random, ['', ...statuses])
  const category = pick(random, ['', '', ...categories])
  const query = new URLSearchParams({
    ...(status && { status }),
    ...(category && { category }),
    sort: pick(random, sorts),
    limit: String(pick(random, [1, 10, 20])),
    offset: String(pick(random, [0, 0, 10, 40])),
  })
  return `/projects?${query}`
}

/** Requests that are refused, and how: api.md and design.md, section 8. */
async function askWrongly({ reader, process, recorder, keys, random }: Reader): Promise<void> {
  const credentials = pick(random, keys)
  const wrong = keyHeaders({
    ...credentials,
    ...pick(random, [{ secret: 'wrong' }, { key: 'pv_live_unknown' }]),
  })
  const [path, status, more] = pick(random, [
    [`/projects?${pick(random, wrongQueries)}`, 400, { credentials }],
    ['/projects', 401, { headers: wrong }],
    ['/stats', 401, {}],
    ['/nowhere', 404, { credentials }],
    ['/projects', 405, { credentials, method: 'POST' }],
    ['/projects', 204, { method: 'OPTIONS' }],
  ] as const)
  // Too many refused requests are refused for that reason.
  const expected = status === 401 || status === 204 ? [status, 429] : [status]
  await recorder.ask({ reader, process, path, expected, ...more })
}

/** As behind a load balancer: any process may answer any page. Rejects if there was no answer. */
function createFetch(reader: string, { recorder, keys, processes }: ReadersOptions) {
  let requests = 0
  return async (path: string, signal?: AbortSignal | null): Promise<Response> => {
    requests++
    const [process, credentials] = [requests % processes, keys[requests % keys.length]]
    const response = await recorder.ask({ reader, process, path, credentials, signal: signal ?? undefined })
    if (!response) throw new TypeError('there was no answer')
    const { status, headers, body } = response
    return new Response(status === 204 || status === 304 ? null : body, { status, headers })
  }
}

/** The loop of the guide (test/simulation/documented-loop.ts). */
export function startLoopMirror(options: ReadersOptions): Mirror {
  const name = 'the loop'
  const get = createFetch(name, options)
  let place: Place = { copy: new Map(), since: null }
  const stop = inBackground(async signal => {
    const wait = async (ms: number) => void (await delay(Math.min(ms, mirrorPauseMs), undefined, { signal }))
    while (!signal.aborted) {
      let isUntold = false
      const settings = {
        pageSize: walkLimit,
        async get(path: string) {
          const response = await get(path, signal)
          const { kept_since = '' } = (await response.clone().json()) as { kept_since?: string }
          if (place.since !== null && kept_since > place.since) isUntold = true
          return response
        },
        wait,
      }
      await poll(place, settings)
      // As the guide says: after a restore, removals may begin later than its watermark. What is not in the list is gone.
      if (isUntold) {
        const whole: Place = { copy: new Map(), since: null }
        await poll(whole, settings)
        if (whole.since !== null && whole.since !== '') place = whole
      }
      await wait(mirrorPauseMs)
    }
  })
  return {
    name,
    copy: () => place.copy,
    isPast: moment => place.isClean === true && Date.parse(place.since ?? '') > moment,
    stop,
  }
}

/** The client (contracts/api/client.ts). */
export function startClientMirror(options: ReadersOptions): Mirror {
  const name = 'the client'
  const get = createFetch(name, options)
  const copy = new Map<string, Project>()
  let watermark: string | null = null
  let saves = 0
  const client = createClient({
    baseUrl: base,
    key: 'replaced',
    secret: 'replaced',
    runtime: {
      now: Date.now,
      random: options.random('client'),
      sleep: async (ms, signal) =>
        void (await delay(Math.min(ms, mirrorPauseMs), undefined, { ...(signal && { signal }) })),
      fetch: (url, init) => get(String(url).slice(base.length), init?.signal),
    },
  })
  const stop = inBackground(async signal => {
    const changes = client.mirror({
      store: {
        load: () => watermark,
        save(next: string) {
          watermark = next
          saves++
        },
      },
      pageSize: walkLimit,
      intervalMs: mirrorPauseMs,
      // For what removals cannot tell, as after a restore.
      reconcile: { held: () => copy.keys() },
      signal,
      onOutage() {},
    })
    for await (const change of changes) {
      if (change.type === 'upsert') copy.set(change.project.id, change.project)
      else copy.delete(change.id)
    }
  })
  return {
    name,
    copy: () => copy,
    // The first walk asks for no removals.
    isPast: moment => saves > 1 && Date.parse(watermark ?? '') > moment,
    stop,
  }
}
