/**
 * The load: a process of its own that asks one server for one thing over and over, on several connections.
 *
 * It looks at the head of each response and counts the bytes of its body. A general load generator parses and keeps
 * more than that, and with pages of 50 KB would itself be what is measured.
 */
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { serveBench } from './bench-process.ts'
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

serveBench({ ready: {}, answer: load })

/** Throws on any other status, and on a connection that breaks. */
async function load({ url, headers, status, connections, ms }: LoadRequest): Promise<LoadResult> {
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
    // It polls and never sleeps: waking it would cost the server that it waits for, and the slower one more than the other.
    while (performance.now() - startedMs < ms && !failed.signal.aborted) await nextTurn()
    failed.signal.throwIfAborted()
    return { requests: answers, seconds: (performance.now() - startedMs) / 1000 }
  } catch (error) {
    throw failed.signal.reason ?? error
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}
