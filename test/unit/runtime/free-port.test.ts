import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'

afterEach(() => {
  vi.restoreAllMocks()
  vi.resetModules()
})

/** The module as another process has it. All of them begin their search at the same port. */
async function anotherProcess() {
  vi.resetModules()
  return import('../../../services/runtime/free-port.ts')
}

test('two processes never get the same port, before anything listens on it', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.123)
  const processes = [await anotherProcess(), await anotherProcess(), await anotherProcess()]
  const taken: number[] = []
  for (let round = 0; round < 10; round++) {
    for (const { freePort } of processes) taken.push(await freePort())
  }
  expect(new Set(taken).size).toBe(taken.length)
})

test('a port on which something listens is left out', async () => {
  const server = createServer()
  // Without a mark: nothing but the listening tells that it is taken.
  let port = 20_000
  while (!(await listens(server, port))) port++
  vi.spyOn(Math, 'random').mockReturnValue((port - 20_000 + 0.5) / 12_000)
  const { freePort } = await anotherProcess()
  expect(await freePort()).toBeGreaterThan(port)
  server.close()
})

async function listens(server: Server, port: number): Promise<boolean> {
  server.listen(port, '127.0.0.1')
  const [outcome] = await Promise.race([
    once(server, 'listening').then(() => [true]),
    once(server, 'error').then(() => [false]),
  ]).catch(() => [false])
  return outcome === true
}
