/** The turn that the connections of strangers share. */
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createSharedTurn, gateRequests } from '../../../../services/runtime/http/request-gate.ts'

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

it('a connection that waits for its first turn is not read, and has no parser', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const turn = createSharedTurn()
  expect(turn.take()).toBe(true)
  const socket = new PassThrough()
  socket.pause()
  // A real socket has a buffer of its own for each read, too.
  socket.write(Buffer.alloc(100))
  let parsers = 0
  const serve = () => {
    parsers++
    socket.on('data', () => {})
  }
  gateRequests(socket as unknown as Socket, serve, () => turn).open()
  vi.advanceTimersByTime(1)
  expect([parsers, socket.readableFlowing]).toEqual([0, false])
  vi.advanceTimersByTime(1)
  expect([parsers, socket.readableFlowing]).toEqual([1, true])
})
