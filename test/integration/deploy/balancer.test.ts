/** The balancer of the compose file, in front of two real query processes, and of two servers that fail. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorBody } from '../../../contracts/api/errors.ts'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import {
  type ClickHouse,
  insertJson,
  settingsFor,
  startClickHouse,
} from '../../support/clickhouse/clickhouse.ts'
import { launchProcess, type ServiceProcess, startProcess } from '../../support/deployment/service-process.ts'
import { needs } from '../../support/runner/requirements.ts'
import { type Balancer, haproxyProgram, startBalancer } from './balancer.ts'

const hosts = ['127.0.1.1', '127.0.1.2'] as const
const failedMax = 5

beforeEach(context => needs(context, haproxyProgram))

describe('in front of two query processes', () => {
  let clickHouse: ClickHouse
  /** The same, after it was away. */
  let back: ClickHouse | undefined
  let balancer: Balancer
  let ports: { api: number; ops: number }
  const processes = new Map<string, ServiceProcess>()
  const pepper = randomBytes(32).toString('hex')

  /** A query process at an address of its own. It trusts only the balancer's X-Forwarded-For. */
  async function start(host: string): Promise<void> {
    processes.set(host, await startProcess(['query'], environmentOf(host)))
  }

  function environmentOf(host: string): Record<string, string> {
    return {
      PLEDGEVIEW_HOST: host,
      PLEDGEVIEW_OPS_HOST: host,
      PLEDGEVIEW_PORT: String(ports.api),
      PLEDGEVIEW_OPS_PORT: String(ports.ops),
      PLEDGEVIEW_TRUST_PROXY: '127.0.0.1',
      PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: String(failedMax),
      PLEDGEVIEW_CLICKHOUSE_URL: clickHouse.url,
      PLEDGEVIEW_CLICKHOUSE_USER: clickHouse.user,
      PLEDGEVIEW_CLICKHOUSE_PASSWORD: clickHouse.password,
      PLEDGEVIEW_KEY_PEPPER: pepper,
    }
  }

  beforeAll(async () => {
    if (!haproxyProgram.isMet) return
    clickHouse = await startClickHouse()
    const tables = openTables(settingsFor(clickHouse))
    await migrate(tables, defaultDatabases)
    await holdTablesIdentity(tables, defaultDatabases, {
      PLEDGEVIEW_KEY_PEPPER: pepper,
      PLEDGEVIEW_PLATFORM_CURRENCY: 'USD',
    })
    await tables.close()
    ports = { api: await freePort(), ops: await freePort() }
    balancer = await startBalancer(ports)
    await Promise.all(hosts.map(start))
  })

  afterAll(async () => {
    await Promise.all([...processes.values()].map(started => started.stop()))
    await balancer?.stop()
    await back?.stop()
    await clickHouse?.stop()
  })

  test('is not ready before a process is, and answers in the form of the API', async () => {
    const ready = await fetch(`${balancer.opsUrl}/readyz`)
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { ok: false, error: 'no query process is ready' },
    ])
    const response = await fetch(`${balancer.apiUrl}/api/v1/projects`)
    await expectOwnError(response, 503)
  })

  test('finds the processes by DNS, also one that comes later, and uses both', async () => {
    balancer.dns.set('query', [hosts[0]])
    await expect.poll(() => statusOf(`${balancer.opsUrl}/readyz`)).toBe(200)
    expect(await statusOf(`${balancer.apiUrl}/api/v1`)).toBe(200)
    balancer.dns.set('query', hosts)
    for (const host of hosts) await expect.poll(() => uses(host)).toBe(true)
  })

  test('passes the address of a client on, and a client cannot choose it', async () => {
    const askFrom = (localAddress: string) => failedFrom(balancer.apiUrl, localAddress)
    const first = []
    // Each process counts by itself, because they have no Redis here.
    for (let sent = 0; sent <= 2 * failedMax; sent++) first.push(await askFrom('127.0.0.5'))
    expect(first.slice(0, failedMax)).toEqual(Array(failedMax).fill(401))
    // One of them got more than its limit, however the balancer shared them out.
    expect(first).toContain(429)
    expect(await askFrom('127.0.0.6')).toBe(401)
  })

  test('sends a request to the other process if one has just gone, so nobody notices', async () => {
    await processes.get(hosts[0])?.stop('SIGTERM')
    // No health check has noticed yet.
    const statuses = await Promise.all(
      Array.from({ length: 40 }, () => statusOf(`${balancer.apiUrl}/api/v1`)),
    )
    // Most are beyond the limit of their address, which is an answer of a process too.
    for (const status of statuses) expect([200, 429]).toContain(status)
    await start(hosts[0])
    await expect.poll(() => uses(hosts[0])).toBe(true)
  })

  test('has metrics of its own for Prometheus, and nothing else on its ops port', async () => {
    const metrics = await (await fetch(`${balancer.opsUrl}/metrics`)).text()
    expect(metrics).toContain('haproxy_server_status{proxy="query",server="query1",state="UP"} 1')
    expect(await statusOf(`${balancer.opsUrl}/`)).toBe(404)
  })

  test('while ClickHouse is away, it passes requests on, and answers that are cached arrive', async () => {
    const key = { api_key: 'pv_live_0123456789abcdefghijklmnop', secret_hash: hashSecret(pepper, 'secret') }
    const row = { ...key, scopes: ['read:public'], account_id: 'a', is_active: true, fold_id: 1 }
    await insertJson(clickHouse, 'pledgeview.api_keys', [row])
    const headers = { 'X-API-Key': key.api_key, 'X-API-Secret': 'secret' }
    const stats = (url: string) => statusOf(`${url}/api/v1/stats`, headers)
    for (const host of hosts)
      await expect.poll(() => stats(`http://${host}:${ports.api}`), { timeout: 60_000 }).toBe(200)
    await clickHouse.kill()
    const readiness = (host: string) => fetch(`http://${host}:${ports.ops}/readyz`)
    for (const host of hosts) {
      const isTold = async () => (await (await readiness(host)).text()).includes('not read recently')
      await expect.poll(isTold, { timeout: 20_000 }).toBe(true)
      expect((await readiness(host)).status).toBe(200)
    }
    for (let asked = 0; asked < 8; asked++) expect(await stats(balancer.apiUrl)).toBe(200)
  })

  test('a process that starts while ClickHouse is away waits for it', async () => {
    await processes.get(hosts[0])?.stop('SIGTERM')
    const launched = launchProcess(['query'], environmentOf(hosts[0]))
    await expect.poll(() => launched.output(), { timeout: 60_000 }).toContain('waiting for ClickHouse')
    const { directory, url } = clickHouse
    back = await startClickHouse({ directory, httpPort: Number(new URL(url).port) })
    processes.set(hosts[0], await launched.started)
  })

  /** Whether a request to the balancer has reached this process. */
  async function uses(host: string): Promise<boolean> {
    const before = await requestsAt(host)
    await Promise.all(Array.from({ length: 4 }, () => statusOf(`${balancer.apiUrl}/api/v1`)))
    return (await requestsAt(host)) > before
  }

  async function requestsAt(host: string): Promise<number> {
    const metrics = await (await fetch(`http://${host}:${ports.ops}/metrics`)).text()
    const counts = metrics.matchAll(/^pledgeview_http_requests_total\{.*\} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }
})

test('a request that was sent is never sent again, so it counts once', async () => {
  const ports = { api: await freePort(), ops: await freePort() }
  const balancer = await startBalancer(ports)
  const servers: Server[] = []
  let received = 0
  try {
    // Takes a request, and ends the connection without an answer.
    const fail: RequestListener = ({ socket }) => {
      received++
      socket.destroy()
    }
    const ready: RequestListener = (_, response) => response.end('{}')
    for (const host of hosts) {
      servers.push(createServer(fail).listen(ports.api, host), createServer(ready).listen(ports.ops, host))
    }
    balancer.dns.set('query', hosts)
    await expect.poll(() => statusOf(`${balancer.opsUrl}/readyz`)).toBe(200)
    const response = await fetch(`${balancer.apiUrl}/api/v1`)
    await expectOwnError(response, 502)
    expect(received).toBe(1)
  } finally {
    await balancer.stop()
    for (const server of servers) server.close()
  }
})

/** An error of the balancer itself, with what a client reads in every answer of the API. */
async function expectOwnError(response: Response, status: number): Promise<void> {
  expect([response.status, await response.json()]).toEqual([status, errorBody('internal_error')])
  const { headers } = response
  expect(headers.get('access-control-allow-origin')).toBe('*')
  expect(headers.get('retry-after')).toBe('5')
  expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['120', '0'])
  // A Unix time, in seconds.
  expect(Math.abs(Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000)).toBeLessThan(60)
}

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers })
  await response.arrayBuffer()
  return response.status
}

/** The status of a request without a valid key, from an address of the loopback, with another made-up header each time. */
async function failedFrom(url: string, localAddress: string): Promise<number> {
  const headers = {
    'X-API-Key': 'pv_live_none',
    'X-API-Secret': 'none',
    'X-Forwarded-For': `192.0.2.${made++ % 200}`,
  }
  const sent = request(`${url}/api/v1/projects`, { localAddress, headers }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  return response.statusCode
}
let made = 0
