import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'

afterEach(() => {
  vi.restoreAllMocks()
  vi.resetModules()
})

/** The module as another process has it. All of them begin their search at the same port. */
async function anotherProcess() {
  vi.resetModules()
  return import('../../../services/shared/free-port.ts')
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
  vi.spyOn(Math, 'random').mockReturnValue(0.456)
  const server = createServer().listen(20_000 + Math.floor(0.456 * 12_000), '127.0.0.1')
  await once(server, 'listening')
  const { freePort } = await anotherProcess()
  expect(await freePort()).toBe(20_000 + Math.floor(0.456 * 12_000) + 1)
  server.close()
})
