/** The promises in services/runtime/redis/connection.ts, over a Redis that is killed, paused and restarted. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { freePort } from '../../../../services/runtime/free-port.ts'
import { type RedisConnection, RedisUnavailableError } from '../../../../services/runtime/redis/connection.ts'
import { makeCertificate, openssl } from '../../../support/kafka/certificate.ts'
import { startProxy } from '../../../support/kafka/proxy.ts'
import { needs } from '../../../support/runner/requirements.ts'
import {
  connectTo,
  isUpWithin,
  type RedisProcess,
  redisProgram,
  startRedis,
} from '../../../support/servers/redis.ts'

interface LogLine {
  level: number
  msg: string
  error?: string
}

let redis: RedisProcess
let log: LogLine[]

beforeEach(async context => {
  needs(context, redisProgram)
  log = []
  redis = await startRedis()
})
afterEach(async () => {
  await redis?.close()
})

function connect(
  settings: Partial<Parameters<typeof connectTo>[1]> & { url?: string } = {},
): RedisConnection {
  const { url = redis.url, ...rest } = settings
  const logger = pino({}, { write: (line: string) => void log.push(JSON.parse(line)) })
  // Long enough for Redis on a busy machine. With less, the log would tell of outages that no test has made.
  const connection = connectTo({ url }, { deadlineMs: 1_000, logger, ...rest })
  onTestFinished(() => connection.close())
  return connection
}

async function connected(settings?: Parameters<typeof connect>[0]): Promise<RedisConnection> {
  const connection = connect(settings)
  expect(await isUpWithin(connection, 60_000)).toBe(true)
  return connection
}

const untilAway = (connection: RedisConnection) => vi.waitUntil(() => !connection.isUp(), { timeout: 60_000 })

describe('a connection to Redis', () => {
  it('makes another connection if the first is never answered', async () => {
    const port = await freePort()
    const proxy = await startProxy({ port, targetPort: redis.port })
    proxy.holdAnswers()
    const made = async () =>
      Number(/total_connections_received:(\d+)/.exec(await redis.client.info('stats'))?.[1])
    const before = await made()
    const connection = connect({ url: `redis://127.0.0.1:${port}` })
    await vi.waitFor(async () => expect(await made()).toBeGreaterThan(before + 1), { timeout: 60_000 })
    expect(connection.isUp()).toBe(false)
    proxy.release()
    expect(await isUpWithin(connection, 60_000)).toBe(true)
    connection.close()
    await proxy.close()
  })

  it('fails round trips at their deadline if Redis has stopped answering, and at once from then on; none runs after Redis came back', async () => {
    const connection = await connected()
    redis.pause()
    const roundTrip = () => connection.run(client => client.incr('count'))
    const results = await Promise.allSettled(Array.from({ length: 50 }, roundTrip))
    expect(results.every(({ status }) => status === 'rejected')).toBe(true)
    expect(connection.isUp()).toBe(false)
    let asked = 0
    await expect(connection.run(async () => asked++)).rejects.toBeInstanceOf(RedisUnavailableError)
    expect(asked).toBe(0)
    await redis.kill()
    await redis.restart()
    expect(await isUpWithin(connection, 60_000)).toBe(true)
    expect(await connection.run(client => client.get('count'))).toBeNull()
  })

  it('does not mistake a pause of its own process for one of Redis', async () => {
    // Again if Redis has not answered by the end of the pause. One of a second would count as Redis's: the socket has that limit.
    await vi.waitFor(
      async () => {
        const connection = await connected({ deadlineMs: 50 })
        const answer = connection.run(client => client.ping())
        const busyUntil = performance.now() + 500
        while (performance.now() < busyUntil);
        expect(await answer).toBe('PONG')
        expect(connection.isUp()).toBe(true)
      },
      { timeout: 60_000 },
    )
  })

  it('logs one line per outage and one per recovery, and never a password', async () => {
    await redis.client.acl('SETUSER', 'service', 'on', '>correct-horse', '~*', '+@all')
    const url = redis.url.replace('redis://', 'redis://service:correct-horse@')
    const connection = await connected({ url })
    await redis.client.acl('SETUSER', 'service', 'off')
    await redis.client.client('KILL', 'USER', 'service')
    await untilAway(connection)
    await Promise.allSettled(Array.from({ length: 20 }, () => connection.run(client => client.ping())))
    expect(await isUpWithin(connection, 500)).toBe(false)
    await redis.client.acl('SETUSER', 'service', 'on')
    expect(await isUpWithin(connection, 60_000)).toBe(true)
    expect(log.map(({ msg }) => msg)).toEqual([
      'Redis is available',
      'Redis is unavailable',
      'Redis is available',
    ])
    expect(JSON.stringify(log)).not.toContain('correct-horse')
  })

  it('stays closed', async () => {
    const connection = await connected()
    connection.close()
    await expect(connection.run(client => client.ping())).rejects.toBeInstanceOf(RedisUnavailableError)
    const names = async () => String(await redis.client.client('LIST'))
    await expect.poll(() => names()).not.toContain('name=test')
    expect(await isUpWithin(connection, 300)).toBe(false)
  })

  it('speaks TLS, and only to a server whose certificate it trusts', async context => {
    needs(context, openssl)
    const directory = mkdtempSync(join(tmpdir(), 'redis-tls-'))
    const { ca, keyStore } = await makeCertificate(directory)
    const port = await freePort()
    const options = ['--tls-cert-file', keyStore, '--tls-key-file', keyStore, '--tls-auth-clients', 'no']
    const secure = await startRedis('--tls-port', String(port), ...options)
    const url = `rediss://localhost:${port}`
    const doubting = connect({ url })
    await vi.waitUntil(() => log.some(({ msg }) => msg === 'Redis is unavailable'), 20_000)
    expect(doubting.isUp()).toBe(false)
    // What NODE_EXTRA_CA_CERTS does when a process starts.
    const trusted = getCACertificates('default')
    onTestFinished(() => setDefaultCACertificates(trusted))
    setDefaultCACertificates([...trusted, ca])
    expect(await isUpWithin(doubting, 60_000)).toBe(true)
    expect(await doubting.run(client => client.ping())).toBe('PONG')
    await secure.close()
    rmSync(directory, { recursive: true })
  })
})
