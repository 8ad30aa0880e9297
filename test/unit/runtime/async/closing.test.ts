import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { closeServer, closing } from '../../../../services/runtime/async/closing.ts'

test('what was opened is closed, the last one first, also if some cannot be closed; the first failure is told', async () => {
  const closed: string[] = []
  const part = (name: string, failure?: string) => ({
    async close() {
      closed.push(name)
      if (failure !== undefined) throw new Error(failure)
    },
  })
  const work = closing(async open => {
    open(part('lock'))
    open(part('tables', 'the tables do not answer'))
    open(part('writer', 'the broker is away'))
  })
  await expect(work).rejects.toThrow('the broker is away')
  expect(closed).toEqual(['writer', 'tables', 'lock'])
})

// A load balancer keeps its connections. It saw the service end with a reset for each of them.
test('a request on an idle connection is still answered while a server closes, and the answer ends the connection', async () => {
  const server = Fastify()
  server.get('/', async () => 'here')
  const url = await server.listen({ port: 0 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = () =>
    new Promise<string | undefined>((resolve, reject) => {
      const answered = (response: IncomingMessage) =>
        response.resume().on('end', () => resolve(response.headers.connection))
      get(url, { agent }, answered).on('error', reject)
    })
  expect(await ask()).toBe('keep-alive')
  const closed = closeServer(server)
  await pause(20)
  expect(await ask()).toBe('close')
  await closed
  await expect(ask()).rejects.toThrow('ECONNREFUSED')
  agent.destroy()
})
