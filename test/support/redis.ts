/**
 * A Redis of a test's own, on a free loopback port and in a directory of its own, that the test may kill and stop as it
 * likes. Suites that only ask a Redis take the one of services/redis.ts.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Logger, pino } from 'pino'
import {
  createRedisConnection,
  type RedisConnection,
  type RedisSettings,
} from '../../services/shared/redis.ts'
import type { Requirement } from './requirements.ts'

const program = 'redis-server'
const hasProgram = spawnSync(program, ['--version']).status === 0

/** A Redis of the test's own: for what takes it away. */
export const redisProgram: Requirement = { isMet: hasProgram, reason: `no ${program} is installed` }

export interface TestRedis {
  url: string
  /** For what a test looks up itself. */
  client: Redis
  close(): Promise<void>
}

export interface RedisProcess extends TestRedis {
  port: number
  /** SIGKILL: what it held is gone. */
  kill(): Promise<void>
  /** Starts it again on the same port, empty, after `kill`. */
  restart(): Promise<void>
  /** SIGSTOP: it takes connections and bytes, and answers nothing. */
  pause(): void
  resume(): void
}

const startMsMax = 10_000

/** Starts a server; `options` are more of its command line. Rejects where it does not start. */
export async function startRedis(...options: string[]): Promise<RedisProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'redis-'))
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  let child = await launch(directory, port, options)
  const client = new Redis(url, { retryStrategy: () => 20 })
  // A server that a test has killed is no news.
  client.on('error', () => undefined)

  // A run that is broken off closes nothing.
  const killAtExit = () => void child.kill('SIGKILL')
  process.on('exit', killAtExit)

  async function kill(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }

  return {
    url,
    port,
    client,
    kill,
    async restart() {
      child = await launch(directory, port, options)
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async close() {
      client.disconnect()
      await kill()
      process.off('exit', killAtExit)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** A connection that gives Redis as long as a busy machine may need, and comes back soon. */
export function connectTo(
  { url }: Pick<TestRedis, 'url'>,
  settings: Partial<Pick<RedisSettings, 'deadlineMs' | 'tls'>> & { logger?: Logger } = {},
): RedisConnection {
  const { deadlineMs = 5000, tls, logger = pino({ level: 'silent' }) } = settings
  return createRedisConnection(
    { url, name: 'test', deadlineMs, reconnectMsMax: 100, ...(tls && { tls }) },
    { now: () => performance.now(), random: Math.random, logger },
  )
}

/** A prefix that no other test has. */
export function newPrefix(): string {
  return `test:${randomBytes(6).toString('hex')}:`
}

async function launch(directory: string, port: number, options: readonly string[]): Promise<ChildProcess> {
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', directory]
  const child = spawn(program, ['--port', String(port), ...settings, ...options], { stdio: 'ignore' })
  const deadline = performance.now() + startMsMax
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`${program} did not start on port ${port}`)
    }
    await delay(10)
  }
  return child
}

async function answers(port: number): Promise<boolean> {
  const client = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: null })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    client.disconnect()
  }
}

/** A port of the loopback that nobody uses. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await once(server.close(), 'close')
  if (typeof address !== 'object' || address === null) throw new Error('a port of the loopback has no number')
  return address.port
}
