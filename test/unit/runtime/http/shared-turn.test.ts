/** The turn that the connections of strangers share. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createConnections } from '../../../../services/runtime/http/connections.ts'
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

it('so many new connections wait for their turn, and a further one takes the place of the oldest', async () => {
  // Turns end only by these timers, so nobody leaves the line.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const server = createServer()
  const strangers = { perAddressMax: 100, max: 100, waitingMax: 2, keepAliveMs: 60_000 }
  createConnections({ perAddressMax: 100, isTrustedProxy: () => false, strangers }).listen(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clients: Socket[] = []
  onTestFinished(() => {
    for (const client of clients) client.destroy()
    server.close()
  })
  const open = async () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    clients.push(client)
    await once(server, 'connection')
    return client
  }
  // The first one has its turn at once. Two wait.
  const [served, oldest, second] = [await open(), await open(), await open()]
  const ended = once(oldest, 'close')
  await open()
  await ended
  expect([served.destroyed, second.destroyed]).toEqual([false, false])
})
