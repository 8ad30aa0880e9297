/**
 * What others notice while a stranger floods the API. Each flood is measured in
 * turn with the same flood against another server, so that what the flooder itself takes of the machine is not counted as ours.
 *
 * Others are one client at another address with a valid key. It asks every 25 ms on a connection that it keeps, and every 25 ms on a new
 * one.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchProcess, startBenchProcess } from '../bench-process.ts'
import type { BenchReport, Figure } from '../report.ts'
import { quantile } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import type { BareInput, BareReady } from './bare.ts'
import type { Flood, FloodRequest, FloodResult } from './floods-load.ts'
import type { ApiServiceInput, ApiServiceReady, ServerAnswer } from './service.ts'

const kib = 1_024
const rounds = 8
const floodMs = 3_000
const pauseMs = 25
const startMsMax = 60_000
const answerMsMax = 30_000

interface Others {
  /** ms, of each request. */
  kept: number[]
  fresh: number[]
}

/** `only`: the names of the floods. Default: all. */
export async function benchFloods(workspace: Workspace, only?: readonly string[]): Promise<BenchReport> {
  const input: ApiServiceInput = { directory: workspace.directory('floods') }
  const bareInput: BareInput = { routes: [{ path: '/', status: 200, headers: {}, body: '{}' }] }
  const started: BenchProcess<unknown>[] = []
  async function start<Ready>(script: string, with_: object): Promise<BenchProcess<Ready>> {
    const found = await startBenchProcess<Ready>({ script, input: with_, msMax: startMsMax })
    started.push(found)
    return found
  }
  try {
    const service = await start<ApiServiceReady>('api/service.ts', input)
    const bare = await start<BareReady>('api/bare.ts', bareInput)
    const flooder = await start<object>('api/floods-load.ts', {})
    const floods = Object.entries(floodsOf(service.ready.headers))
    const chosen = floods.filter(([name]) => only?.includes(name) ?? true)
    return await measure(service, Number(new URL(bare.ready.url).port), flooder, chosen)
  } finally {
    for (const process of started) await process.end()
  }
}

async function measure(
  service: BenchProcess<ApiServiceReady>,
  barePort: number,
  flooder: BenchProcess<object>,
  floods: [name: string, flood: Flood][],
): Promise<BenchReport> {
  const { apiUrl, headers } = service.ready
  const port = Number(new URL(apiUrl).port)
  const request = requestOf('GET', '/api/v1/stats', headers)
  const figures: Figure[] = []
  const others = async (ms: number): Promise<Others> => {
    const end = performance.now() + ms
    const [kept, fresh] = await Promise.all([askKept(port, request, end), askFresh(port, request, end)])
    return { kept, fresh }
  }
  // A client with a valid key that asks at full speed: the memory that any work makes the process take is not counted as the floods'.
  await flooder.ask<FloodResult>({ request, connections: 20, aheadBytes: 0, port, ms: 2 * floodMs })
  for (const [name, flood] of floods) {
    const quiet: Others[] = []
    const ours: Others[] = []
    const before = await memoryBytes(service)
    let cpuMs = 0
    let opened = 0
    for (let round = 0; round < rounds; round++) {
      for (const [all, target] of [[quiet, barePort] as const, [ours, port] as const]) {
        const asked: FloodRequest = { ...flood, port: target, ms: floodMs }
        const usage = () => service.ask<ServerAnswer>({ log: false })
        await usage()
        const [measured, sent] = await Promise.all([others(floodMs), flooder.ask<FloodResult>(asked)])
        all.push(measured)
        if (all !== ours) continue
        cpuMs += (await usage()).cpuMs
        opened += sent.opened
      }
    }
    const of = (all: Others[], which: keyof Others, share: number) =>
      quantile(
        all.flatMap(one => one[which]),
        share,
      )
    const ratio = of(ours, 'kept', 0.99) / of(quiet, 'kept', 0.99)
    figures.push(
      { name: `${name}: kept connection, p99`, value: of(ours, 'kept', 0.99), unit: 'ms' },
      {
        name: `${name}: the same, to a flood of another server`,
        value: ratio,
        unit: '',
        target: { atMost: 2 },
      },
      {
        name: `${name}: connections of the flood`,
        value: (opened / rounds / floodMs) * 1_000,
        unit: '/s',
      },
      {
        name: `${name}: CPU of the event loop, the others' requests included`,
        value: (cpuMs / rounds / floodMs) * 100,
        unit: '%',
      },
      {
        name: `${name}: new connection, slowest`,
        value: of(ours, 'fresh', 1),
        unit: 'ms',
        target: { atMost: 1_000 },
      },
      {
        name: `${name}: memory more`,
        value: ((await memoryBytes(service)) - before) / kib / kib,
        unit: 'MB',
        target: { atMost: 100 },
      },
    )
  }
  return {
    bench: 'floods',
    notes: [
      'What one client with a valid key at another address notices while a stranger floods the API, each time beside the same flood of another server.',
    ],
    figures,
  }
}

function floodsOf(headers: Record<string, string>): Record<string, Flood> {
  const valid = requestOf('GET', '/api/v1/stats', headers)
  const wrong = requestOf('GET', '/api/v1/stats', {
    ...headers,
    'x-api-secret': `pv_secret_${'w'.repeat(49)}`,
  })
  const preflight = requestOf('OPTIONS', '/api/v1/stats', {})
  const root = 'GET / HTTP/1.1\r\n\r\n'
  return {
    '100 connections of 64 KiB': { request: root, connections: 100, aheadBytes: 64 * kib },
    '400 connections of 64 KiB': { request: root, connections: 400, aheadBytes: 64 * kib },
    '400 connections of 256 KiB': { request: root, connections: 400, aheadBytes: 256 * kib },
    '4 behind a valid request': { request: root, first: valid, connections: 4, aheadBytes: 256 * kib },
    'wrong secrets on 1': { request: wrong, connections: 1, aheadBytes: 0 },
    'wrong secrets on 20': { request: wrong, connections: 20, aheadBytes: 0 },
    'OPTIONS on 8': { request: preflight, connections: 8, aheadBytes: 0 },
  }
}

function requestOf(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ host: 'bench', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
}

async function memoryBytes(service: BenchProcess<ApiServiceReady>): Promise<number> {
  return (await service.ask<ServerAnswer>({ log: false })).peakBytes
}

async function askKept(port: number, request: string, end: number): Promise<number[]> {
  const all: number[] = []
  let socket = open(port)
  while (performance.now() < end) {
    if (socket.destroyed) socket = open(port)
    all.push(await ask(socket, request))
    await delay(pauseMs)
  }
  socket.destroy()
  return all
}

async function askFresh(port: number, request: string, end: number): Promise<number[]> {
  const all: number[] = []
  while (performance.now() < end) {
    const socket = open(port)
    all.push(await ask(socket, request))
    socket.destroy()
    await delay(pauseMs)
  }
  return all
}

function open(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  socket.on('error', () => {})
  return socket
}

/** ms until the answer is whole. A connection that is closed instead counts as the longest time: it must not look quick. */
async function ask(socket: Socket, request: string): Promise<number> {
  const began = performance.now()
  const isAnswered = await new Promise<boolean>(resolve => {
    let text = ''
    const timer = setTimeout(() => finish(false), answerMsMax)
    const onData = (data: Buffer) => {
      text += data.toString('latin1')
      if (isWhole(text)) finish(text.startsWith('HTTP/1.1 200'))
    }
    const onClose = () => finish(false)
    function finish(answered: boolean): void {
      clearTimeout(timer)
      socket.off('data', onData).off('close', onClose)
      resolve(answered)
    }
    socket.on('data', onData).once('close', onClose)
    socket.write(request)
  })
  return isAnswered ? performance.now() - began : answerMsMax
}

function isWhole(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return false
  const length = Number(/content-length: (\d+)/i.exec(text.slice(0, headEnd))?.[1] ?? 0)
  return text.length >= headEnd + 4 + length
}
