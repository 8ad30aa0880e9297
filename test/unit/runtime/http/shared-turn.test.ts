import { expect, it, onTestFinished, vi } from 'vitest'
import { createSharedTurn } from '../../../../services/runtime/http/request-gate.ts'

it('a shared turn lasts two milliseconds, and who has left the line gets none', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const turn = createSharedTurn()
  const served: string[] = []
  expect(turn.take()).toBe(true)
  expect(turn.take()).toBe(false)
  const leave = turn.wait(() => served.push('gone'))
  for (const name of ['first', 'second']) turn.wait(() => served.push(name))
  leave()
  vi.advanceTimersByTime(1)
  expect(served).toEqual([])
  vi.advanceTimersByTime(1)
  expect(served).toEqual(['first'])
  vi.advanceTimersByTime(2)
  expect(served).toEqual(['first', 'second'])
})
