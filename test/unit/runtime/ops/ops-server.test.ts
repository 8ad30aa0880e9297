/**
 * The ops port: a page on another name must not read it through a visitor's browser, one address has few connections, and probes get an
 * answer in time and do not pile up.
 */
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Check, lagCheck, sharedAnswered, tablesCheck } from '../../../../services/runtime/ops/checks.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { createOpsServer, type OpsServerDependencies } from '../../../../services/runtime/ops/ops-server.ts'
import { connectRaw, sendRaw } from '../../../support/query/raw-http.ts'

let port: number
let close: () => Promise<void>

beforeAll(async () => {
  ;({ port, close } = await startOpsServer())
})
afterAll(() => close())

const paths = ['/status', '/metrics', '/healthz', '/readyz', '/unknown']

function opsServer(changes: Partial<OpsServerDependencies> = {}) {
  return createOpsServer({
    hosts: ['ops.internal', 'Monitor.Example'],
    health: () => ({}),
    readiness: async () => ({}),
    status: async () => ({ service: 'test' }),
    metrics: createMetrics(),
    beforeScrape: async () => {},
    ...changes,
  })
}

async function startOpsServer(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = opsServer()
  await server.listen({ host: '127.0.0.1', port: 0 })
  return { port: (server.server.address() as AddressInfo).port, close: () => server.close() }
}

async function ask(path: string, host: string): Promise<{ status: number | undefined; body: string }> {
  const [response] = await sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  return { status: response?.status, body: response?.body ?? '' }
}

describe('the ops port', () => {
  it.each(paths)('answers %s to no other name: such a name may be made to lead here', async path => {
    for (const host of [
      'rebind.example',
      'rebind.example:9090',
      '127.0.0.1.rebind.example',
      'ops.internal.example',
    ]) {
      const { status, body } = await ask(path, host)
      expect(status, host).toBe(421)
      expect(JSON.parse(body)).toEqual({
        error:
          `this port does not answer for the name ${JSON.stringify(host.replace(':9090', ''))}: ` +
          'call it by an IP address, or add the name to PLEDGEVIEW_OPS_HOSTS',
      })
    }
  })

  it.each([
    '127.0.0.1',
    '127.0.0.1:9090',
    '10.1.2.3:9090',
    '[::1]:9090',
    '[fd00::7]',
    'localhost',
    'LOCALHOST:9090',
    'ops.internal:9090',
    'ops.internal.',
    'monitor.example',
  ])('answers for %s', async host => {
    expect((await ask('/healthz', host)).status).toBe(200)
    expect((await ask('/status', host)).body).toBe('{"service":"test"}')
  })

  it.each(['', 'a b', 'http://127.0.0.1', '127.0.0.1@rebind.example', '[::1', '127.0.0.1:9090:1'])(
    'does not answer for %j, which is no host',
    async host => {
      expect([400, 421]).toContain((await ask('/status', host)).status)
    },
  )

  it('has 64 connections of one address, and a further one takes the place of the one that is idle for longest', async () => {
    // The connections of other tests may still be ending.
    const { port, close } = await startOpsServer()
    const connections = await Promise.all(Array.from({ length: 64 }, () => connectRaw(port)))
    const request = 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
    for (const connection of connections) {
      connection.send(request)
      expect(await connection.next()).toMatchObject({ status: 200 })
    }
    expect(await sendRaw(port, request)).toMatchObject([{ status: 200 }])
    expect(await connections[0]?.next()).toBe(undefined)
    for (const connection of connections) connection.close()
    await close()
  })

  it('answers probes in time while a check is under way, which they share', async () => {
    let asked = 0
    const lag = sharedAnswered('the event log', () => new Promise<Check>(() => asked++), 10)
    const server = opsServer({ readiness: async () => ({ lag: await lag() }) })
    const probe = () => server.inject({ url: '/readyz', headers: { host: 'localhost' } })
    for (const probes of [[probe(), probe()], [probe()]]) {
      for (const { statusCode, json } of await Promise.all(probes)) {
        expect(statusCode).toBe(503)
        expect(json().checks.lag.detail).toBe('the event log gives no answer within 10 ms')
      }
    }
    expect(asked).toBe(1)
  })

  it('makes what is costly once for callers at the same time', async () => {
    const counts = { readiness: 0, status: 0, beforeScrape: 0 }
    const count = (name: keyof typeof counts) => async () => {
      counts[name]++
      await new Promise(resolve => setImmediate(resolve))
      return {}
    }
    const server = opsServer({
      readiness: count('readiness'),
      status: count('status'),
      beforeScrape: async () => void (await count('beforeScrape')()),
    })
    await server.ready()
    const ask = (url: string) => server.inject({ url, headers: { host: 'localhost' } })
    for (const url of ['/readyz', '/status', '/metrics']) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => ask(url)))
      expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(10).fill(200))
    }
    expect(counts).toEqual({ readiness: 1, status: 1, beforeScrape: 1 })
  })
})

it('a check of silent tables ends in time, and leaves no statement behind', async () => {
  let asked: AbortSignal | undefined
  const silent = (_: unknown, { signal }: { signal?: AbortSignal } = {}) => {
    asked = signal
    return new Promise<never>(() => {})
  }
  expect(await tablesCheck({ rows: silent }, 10)).toEqual({ ok: false, detail: 'no answer within 10 ms' })
  expect(asked?.aborted).toBe(true)
})

it('the lag is within its bound up to the last record that it allows, over all partitions', () => {
  const lag = [0, 1].map(partition => ({ topic: 'pledges' as const, partition, committed: 3, end: 8 }))
  expect(lagCheck(lag, 10)).toEqual({ ok: true, detail: '10 records wait, at most 10 are allowed' })
  expect(lagCheck(lag, 9)).toEqual({ ok: false, detail: '10 records wait, at most 9 are allowed' })
})
