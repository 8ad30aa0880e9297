/**
 * The pollers of the list bench: a process of its own with a connection each, which ask for what changed since a moment
 * near now, every time another, and ask again as soon as they are answered.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { serveBench } from './bench-process.ts'
import { openConnection, requestText } from './connection.ts'

export interface PollersRequest {
  apiUrl: string
  headers: Record<string, string>
  pollers: number
  ms: number
}

export interface PollersResult {
  seconds: number
  /** Of every answer. */
  latenciesMs: number[]
}

// One who polls every minute asks for the last minute, before the commit horizon.
const nearestMs = 5_000
const spanMs = 60_000
const chunkBytes = 64 * 1024
// Connections are made a few at a time: a thousand at once overflow what a listening socket lets wait.
const connectingMax = 50

serveBench({ ready: {}, answer: poll })

/** Throws on any status but 200, and on a connection that breaks. */
async function poll({ apiUrl, headers, pollers, ms }: PollersRequest): Promise<PollersResult> {
  const failed = new AbortController()
  const asked = new Set<number>()
  const askedAtMs = new Map<Socket, number>()
  const latenciesMs: number[] = []
  // A connection reads its bytes whole before another does, so one buffer serves all.
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
              latenciesMs.push(performance.now() - (askedAtMs.get(socket) ?? 0))
              ask(socket)
            },
            onFailure: error => failed.abort(error),
          },
          buffer,
        ),
      )
      sockets.push(...opened)
      await Promise.all(opened.map(socket => once(socket, 'connect', { signal: failed.signal })))
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

/** A moment that nobody has asked for yet, Unix ms. */
function newMoment(asked: Set<number>): number {
  let moment = Date.now() - nearestMs - Math.floor(Math.random() * spanMs)
  while (asked.has(moment)) moment--
  asked.add(moment)
  return moment
}
