/**
 * Readers that ask the API all the time, of all query processes: lists, walks, details, statistics, removals, wrong requests and wrong
 * keys. And mirrors: one follows the guide's loop, one is the client. The checker reads every answer.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { categories } from '../../support/faults/campaign-histories.ts'
import type { Traffic } from '../../support/faults/traffic.ts'
import { keyHeaders } from '../../support/query/app.ts'
import { pick, pickWeighted, type Random } from '../../support/runner/random.ts'
import { createClientPoller, createLoopPoller } from '../../support/simulation/pollers.ts'
import type { Recorder } from './recorder.ts'

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

export type Mirror = ReturnType<typeof startMirror>

const readersPerProcess = 2
const pauseMs = 60
// So that a list of a world has several pages.
const walkLimit = 20
// Removals are compared with the truth when a page has them all.
const removalsLimit = 100
// The shortest that the client allows.
const mirrorPauseMs = 1_000
const mirrorPlan = {
  ...{ pageSize: walkLimit, intervalMs: mirrorPauseMs, startsAt: mirrorPauseMs },
  ...{ reconciles: true, restartsAt: undefined },
}
const dayMs = 86_400_000
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
  for (const [resource, limit] of [
    ['/projects', walkLimit],
    ['/removals', removalsLimit],
  ] as const) {
    for (let offset = 0, hasMore = true; hasMore; offset += limit) {
      const response = await ask(reader, `${resource}?limit=${limit}&offset=${offset}`)
      hasMore = response?.status === 200 && JSON.parse(response.body).pagination.has_more
    }
  }
  await ask(reader, '/stats')
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
  const [path, expected, more] = pick(random, [
    [`/projects?${pick(random, wrongQueries)}`, [400], { credentials }],
    ['/nowhere', [404], { credentials }],
    // Too many refused requests are refused for that reason.
    ['/projects', [401, 429], { headers: wrong }],
    ['/stats', [401, 429], {}],
    ['/projects', [405], { credentials, method: 'POST' }],
    ['/projects', [204, 429], { method: 'OPTIONS' }],
  ] as const)
  await recorder.ask({ reader, process, path, expected, ...more })
}

/** A mirror, as the simulation has them: the loop of the guide, or the client (contracts/api/client.ts). */
export function startMirror(kind: 'loop' | 'client', options: ReadersOptions) {
  const { recorder, keys, processes, random } = options
  const name = `the ${kind}`
  const stopping = new AbortController()
  const whileItRuns = (signal: AbortSignal = stopping.signal) => AbortSignal.any([signal, stopping.signal])
  let quietAt = Number.POSITIVE_INFINITY
  let requests = 0

  /** As behind a load balancer: any process may answer any page. Rejects if there was no answer. */
  async function get(path: string, _: unknown, given: AbortSignal | undefined): Promise<Response> {
    const signal = whileItRuns(given)
    const process = ++requests % processes
    const credentials = keys[requests % keys.length]
    const response = await recorder.ask({ reader: name, process, path, credentials, signal })
    signal.throwIfAborted()
    if (!response) throw new TypeError('there was no answer')
    return new Response(response.body, response)
  }

  const create = kind === 'loop' ? createLoopPoller : createClientPoller
  const poller = create({
    // It walks everything at the start, and after a restore.
    plan: { ...mirrorPlan, kind },
    reconcileEveryMs: dayMs,
    startsAt: Date.now(),
    time: {
      now: Date.now,
      async sleep(ms, given) {
        const signal = whileItRuns(given)
        await delay(Math.min(ms, mirrorPauseMs), undefined, { signal }).catch(() => signal.throwIfAborted())
      },
    },
    random: random(name),
    get,
    headers: { authorization: 'Bearer replaced:replaced' },
    quietAt: () => quietAt,
  })
  const following = poller.follow().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error
  })
  following.catch(() => {})
  return {
    name,
    copy: () => poller.copy(),
    /** Resolves when it has read everything up to this moment. Then it reads no more. */
    async follow(moment: number): Promise<void> {
      quietAt = moment
      await following
    },
    async stop(): Promise<void> {
      stopping.abort()
      await following
    },
  }
}
