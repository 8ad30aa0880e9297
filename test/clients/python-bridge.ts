/**
 * The Python client as a client of TypeScript, so that both pass the same tests. It runs in a process of its own (python-api/bridge.py), and
 * asks the test for answers, for time and for the copy, one thing after the other.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { defaultRuntime } from '../../contracts/api/client/runtime.ts'
import {
  type Change,
  type Client,
  ClientError,
  type ClientOptions,
  createClient,
  type MirrorOptions,
  type ReconcileOptions,
  type Verdict,
  type VerifyOptions,
  type WatermarkStore,
} from '../../contracts/api/client.ts'
import type { Requirement } from '../support/runner/requirements.ts'
import { path } from './programs.ts'

export const python3: Requirement = {
  isMet: spawnSync('python3', ['--version']).status === 0,
  reason: 'python3 is not installed',
}

/** The clients that pass the same tests. One world in six is played in Python: it crosses to another process for each request. */
export const clients = [
  {
    language: 'TypeScript',
    create: createClient,
    runs: (count: number) => count,
    needs: { isMet: true, reason: '' },
  },
  {
    language: 'Python',
    create: createPythonClient,
    runs: (count: number) => Math.ceil(count / 6),
    needs: python3,
  },
] as const

interface Asked {
  ask: string
  ms: number
  url: string
  headers: Record<string, string>
  watermark: string
  change: Change
  error: Failure
}
type Failure = ConstructorParameters<typeof ClientError>[0]
/** What the client asks for in one operation. A thrown error ends the operation. */
type Host = Record<string, (asked: Asked) => unknown>
interface Result {
  value?: never
  done?: never
  stopped?: true
  error?: Failure
  range?: string
}

let started: Promise<ReturnType<typeof start>> | undefined
let turn: Promise<unknown> = Promise.resolve()
let clientsMade = 0
const storeNumbers = new WeakMap<WatermarkStore, number>()
let storesMade = 0

/** Only what the tests need: `signal` ends an iteration, and `from` stands for the whole copy of the service. */
export function createPythonClient(options: ClientOptions): Client {
  const { runtime: given, ...rest } = options
  const runtime = { ...defaultRuntime, ...given }
  const number = clientsMade++
  const { now, random } = runtime
  const created = perform({ operation: 'create', number, options: snake(rest), random: random() }, {})

  async function perform(operation: object, host: Host): Promise<Result> {
    const ours = turn.then(() => exchange(operation, host, now))
    turn = ours.catch(() => undefined)
    return ours
  }

  function hostOf(signal: AbortSignal | undefined, more: Host = {}): Host {
    return {
      sleep: ({ ms }) => runtime.sleep(ms, signal),
      async fetch({ url, headers }) {
        signal?.throwIfAborted()
        try {
          return await plain(await runtime.fetch(url, { headers }))
        } catch (error) {
          return { lost: String(error) }
        }
      },
      ...more,
    }
  }

  async function call(method: string, options: object, host: Host, positional: unknown[] = []) {
    await created
    return (await perform({ operation: 'call', number, method, options, positional }, host)).value as never
  }

  async function* iterate<End>(method: string, options: object, host: Host): AsyncGenerator<Change, End> {
    await created
    const { value } = await perform({ operation: 'iterate', number, method, options }, host)
    try {
      for (;;) {
        const step = await perform({ operation: 'next', number: value }, host)
        if ('done' in step) return step.done as End
        yield step.value as unknown as Change
      }
    } finally {
      await perform({ operation: 'end', number: value }, host)
    }
  }

  return {
    list: ({ signal, ...parameters } = {}) => call('list', snake(parameters), hostOf(signal)),
    detail: (slug, { signal } = {}) => call('detail', {}, hostOf(signal), [slug]),
    stats: ({ signal } = {}) => call('stats', {}, hostOf(signal)),
    // Never read here: it tells a mirror to start with it.
    wholeCopy: () => Promise.resolve(null),
    mirror({ signal, store, reconcile, onOutage, from, ...rest }: MirrorOptions = {}) {
      const flags = {
        asks_held: reconcile !== undefined,
        asks_outage: onOutage !== undefined,
        starts: from !== undefined,
      }
      const every = reconcile?.everyMs === undefined ? {} : { reconcile_every_ms: reconcile.everyMs }
      return iterate(
        'mirror',
        { ...snake(rest), ...flags, ...every, ...numbered(store) },
        hostOf(signal, {
          ...storeHost(store),
          held: () => [...((reconcile?.held() ?? []) as Iterable<string>)],
          outage: ({ error }) => onOutage?.(new ClientError(error)),
        }),
      )
    },
    reconcile({ signal, store, held, ...rest }: ReconcileOptions) {
      const options = { ...snake(rest), held: [...(held as Iterable<string>)], ...numbered(store) }
      return iterate('reconcile', options, hostOf(signal, storeHost(store)))
    },
    verify({ signal, store, held, apply, ...rest }: VerifyOptions): Promise<Verdict> {
      const options = { ...snake(rest), asks_held: true, asks_apply: true, ...numbered(store) }
      return call(
        'verify',
        options,
        hostOf(signal, {
          ...storeHost(store),
          held: () => [...(held() as Iterable<object>)],
          apply: ({ change }) => apply(change),
        }),
      )
    },
  }
}

function numbered(store: WatermarkStore | undefined): object {
  if (store === undefined) return {}
  const number = storeNumbers.get(store) ?? storesMade++
  storeNumbers.set(store, number)
  return { store: number }
}

function storeHost(store: WatermarkStore | undefined): Host {
  return { load: () => store?.load() ?? null, save: ({ watermark }) => store?.save(watermark) }
}

async function plain(response: Response): Promise<object> {
  const body = Buffer.from(await response.arrayBuffer()).toString('base64')
  const { status, url, redirected } = response
  return { status, headers: Object.fromEntries(response.headers), url, redirected, body }
}

/** The names of Python. */
function snake(options: object): object {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    given.map(([name, value]) => [name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`), value]),
  )
}

async function exchange(operation: object, host: Host, now: () => number): Promise<Result> {
  started ??= Promise.resolve(start())
  const { send, receive } = await started
  let thrown: unknown
  send({ ...operation, now: now() })
  for (;;) {
    const said = await receive()
    if (said.result !== undefined) {
      const { stopped, error, range } = said.result
      if (stopped) throw thrown
      if (error) throw new ClientError(error)
      if (range !== undefined) throw new RangeError(range)
      return said.result
    }
    const answer = await Promise.resolve()
      .then(() => host[said.ask]?.(said))
      .then(
        answer => ({ answer: answer ?? null }),
        error => {
          thrown = error
          return { stop: true }
        },
      )
    send({ ...answer, now: now() })
  }
}

function start() {
  const environment = {
    ...process.env,
    PYTHONPATH: path('../../contracts/api/client-python'),
    PYTHONDONTWRITEBYTECODE: '1',
  }
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(
    'python3',
    [path('python-api/bridge.py')],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: environment,
    },
  )
  // It ends with this process, whose end of the pipe closes.
  child.unref()
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    send: (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`),
    async receive(): Promise<Asked & { result?: Result }> {
      const { done, value } = await lines.next()
      if (done) throw new Error('the Python client has ended')
      return JSON.parse(value)
    },
  }
}
