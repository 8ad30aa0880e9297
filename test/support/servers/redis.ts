/**
 * Starts a Redis for one test, on a free loopback port and in its own directory. The test may kill and pause it. Suites
 * that only need a Redis use the one of services/redis.ts.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type Logger, pino } from 'pino'
import { freePort } from '../../../services/runtime/free-port.ts'
import {
  createRedisConnection,
  type RedisConnection,
  type RedisSettings,
} from '../../../services/runtime/redis/connection.ts'
import { endProgram, killAtExit, untilAnswers } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

const program = 'redis-server'
const hasProgram = spawnSync(program, ['--version']).status === 0

/** The requirement of tests that kill or pause Redis. */
export const redisProgram: Requirement = { isMet: hasProgram, reason: `no ${program} is installed` }

export interface TestRedis {
  url: string
  /** A client for the test itself. */
  client: Redis
  close(): Promise<void>
}

export type RedisProcess = Awaited<ReturnType<typeof startRedis>>

/** Starts a server. `options` are added to its command line. Rejects if it does not start. */
export async function startRedis(...options: string[]) {
  const directory = mkdtempSync(join(tmpdir(), 'redis-'))
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const client = new Redis(url, { retryStrategy: () => 20 })
  // A killed server is expected.
  client.on('error', () => undefined)
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', directory]
  let child: ChildProcess

  async function launch(): Promise<void> {
    child = spawn(program, ['--port', String(port), ...settings, ...options], { stdio: 'ignore' })
    killAtExit(child)
    await untilAnswers(child, `${program} on port ${port}`, () => client.ping())
  }

  await launch().catch(cause => {
    client.disconnect()
    throw cause
  })

  return {
    url,
    port,
    client,
    /** Sends SIGKILL. All data is lost. */
    kill: () => endProgram(child),
    /** Starts it again, empty, on the same port, after `kill`. */
    restart: launch,
    /** Sends SIGSTOP: Redis accepts connections and bytes, and answers nothing. */
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async close(): Promise<void> {
      client.disconnect()
      await endProgram(child)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** A connection with a long deadline for busy machines, which reconnects quickly. */
export function connectTo(
  { url }: Pick<TestRedis, 'url'>,
  settings: Partial<Pick<RedisSettings, 'deadlineMs'>> & { logger?: Logger } = {},
): RedisConnection {
  const { deadlineMs = 5000, logger = pino({ level: 'silent' }) } = settings
  return createRedisConnection(
    { url, name: 'test', deadlineMs, reconnectMsMax: 100 },
    { now: () => performance.now(), random: Math.random, logger },
  )
}

/** Resolves to true when the connection comes up, or to false after `msMax`. */
export function isUpWithin(connection: Pick<RedisConnection, 'onUp'>, msMax: number): Promise<boolean> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, msMax, false)
    connection.onUp(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** Returns a unique prefix. */
export function newPrefix(): string {
  return `test:${randomBytes(6).toString('hex')}:`
}
