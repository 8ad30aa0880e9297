/**
 * Who gets an answer of the ops port: a page on another name must not read it through a visitor's browser, and one address has few
 * connections.
 */
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { createOpsServer } from '../../../../services/runtime/ops/ops-server.ts'
import { connectRaw, sendRaw } from '../../../support/query/raw-http.ts'

let port: number
let close: () => Promise<void>

beforeAll(async () => {
  ;({ port, close } = await startOpsServer())
})
afterAll(() => close())

const paths = ['/status', '/metrics', '/healthz', '/readyz', '/unknown']

async function startOpsServer(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createOpsServer({
    hosts: ['ops.internal', 'Monitor.Example'],
    health: () => ({}),
    readiness: async () => ({}),
    status: async () => ({ service: 'test' }),
    metrics: createMetrics(),
    beforeScrape: async () => {},
  })
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
})
