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
