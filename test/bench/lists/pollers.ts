/**
 * The pollers of the list bench, with one connection per poller. Each requests what changed since a recent moment, a different one
 * every time, and sends the next request as soon as it has an answer.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { openConnection, requestText } from '../api/connection.ts'
import type { Api } from './requests.ts'

export interface PollersResult {
  seconds: number
  /** The duration of every request. */
  latenciesMs: number[]
}

// A poller with a period of one minute requests the last minute, up to the commit horizon.
const nearestMs = 5_000
const spanMs = 60_000
const chunkBytes = 64 * 1024
// Opens a few connections at a time: a thousand at once overflow the backlog of a listening socket.
const connectingMax = 50

/** Throws on any status but 200, and if a connection breaks. */
export async function poll(
  { apiUrl, headers }: Api,
  { pollers, ms }: { pollers: number; ms: number },
): Promise<PollersResult> {
  const failed = new AbortController()
  const asked = new Set<number>()
  const askedAtMs = new Map<Socket, number>()
  const latenciesMs: number[] = []
  let greeted = 0
  // The bytes of one connection are read completely before those of another, so one buffer is enough.
  const buffer = Buffer.allocUnsafe(chunkBytes)

  function ask(socket: Socket): void {
    askedAtMs.set(socket, performance.now())
    const target = new URL(`${apiUrl}/projects?updated_since=${new Date(newMoment(asked)).toISOString()}`)
    socket.write(requestText(target, headers))
  }

  const sockets: Socket[] = []
  try {
    while (sockets.length < pollers) {
      const opened = Array.from({ length: Math.min(connectingMax, pollers - sockets.length) }, () =>
        openConnection(
          new URL(apiUrl),
          {
            status: 200,
            onAnswer(socket) {
              const askedAt = askedAtMs.get(socket)
              if (askedAt === undefined) {
                greeted++
                return
              }
              latenciesMs.push(performance.now() - askedAt)
              ask(socket)
            },
            onFailure: error => failed.abort(error),
          },
          buffer,
        ),
      )
      sockets.push(...opened)
      await Promise.all(opened.map(socket => once(socket, 'connect', { signal: failed.signal })))
      // New connections of one address wait for each other. Pollers come from many addresses, and have polled before.
      for (const socket of opened) socket.write(requestText(new URL(`${apiUrl}/projects?limit=1`), headers))
      while (greeted < sockets.length) await delay(10, undefined, { signal: failed.signal })
    }
    const startedMs = performance.now()
    for (const socket of sockets) ask(socket)
    await delay(ms, undefined, { signal: failed.signal })
    return { seconds: (performance.now() - startedMs) / 1000, latenciesMs }
  } catch (error) {
    throw failed.signal.reason ?? error
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** A moment that was not requested yet, Unix ms. */
function newMoment(asked: Set<number>): number {
  let moment = Date.now() - nearestMs - Math.floor(Math.random() * spanMs)
  while (asked.has(moment)) moment--
  asked.add(moment)
  return moment
}
