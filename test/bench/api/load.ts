/**
 * The load: repeats one request to one server, on several connections. The server runs in another process.
 *
 * It reads the head of each response and counts the bytes of its body. A general load generator parses and keeps more, and
 * with pages of 50 KB it would itself be the bottleneck.
 */
import { once } from 'node:events'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { openConnection, requestText } from './connection.ts'

export interface LoadRequest {
  url: string
  headers: Record<string, string>
  /** The only status that counts as an answer. */
  status: number
  connections: number
  ms: number
}

export interface LoadResult {
  requests: number
  seconds: number
}

/** Throws on any other status, and if a connection breaks. */
export async function load({ url, headers, status, connections, ms }: LoadRequest): Promise<LoadResult> {
  const target = new URL(url)
  const request = requestText(target, headers)
  const failed = new AbortController()
  let answers = 0
  const sockets = Array.from({ length: connections }, () =>
    openConnection(target, {
      status,
      onAnswer(socket) {
        answers++
        socket.write(request)
      },
      onFailure: error => failed.abort(error),
    }),
  )
  try {
    await Promise.all(sockets.map(socket => once(socket, 'connect', { signal: failed.signal })))
    const startedMs = performance.now()
    for (const socket of sockets) socket.write(request)
    // It polls and never sleeps: waking it would cost CPU of the server under test, and cost the slower server more.
    while (performance.now() - startedMs < ms && !failed.signal.aborted) await yieldToEventLoop()
    failed.signal.throwIfAborted()
    return { requests: answers, seconds: (performance.now() - startedMs) / 1000 }
  } catch (error) {
    throw failed.signal.reason ?? error
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}
