/**
 * A stranger who floods a port, from 127.0.0.1: on each of its connections it sends requests without waiting, or one after the other's
 * answer, and opens the next connection as soon as one is closed.
 */
import { connect } from 'node:net'
import { benchInput, serveBench } from '../bench-process.ts'

export interface Flood {
  /** What is sent again and again: one request. */
  request: string
  /** Sent once, at the beginning of each connection. */
  first?: string
  connections: number
  /** Bytes of requests that a connection sends at once; 0: each request waits for the answer to the one before. */
  aheadBytes: number
}

export interface FloodRequest extends Flood {
  port: number
  ms: number
}

export interface FloodResult {
  opened: number
  /** Pieces of answers that came back. */
  answers: number
}

benchInput()
serveBench({ ready: {}, answer: flood })

async function flood({
  request,
  first = '',
  connections,
  aheadBytes,
  port,
  ms,
}: FloodRequest): Promise<FloodResult> {
  const result = { opened: 0, answers: 0 }
  const piece = Buffer.from(request.repeat(Math.max(1, Math.floor(aheadBytes / request.length))))
  const isSequential = aheadBytes === 0
  const end = performance.now() + ms
  const left = () => end - performance.now()

  const lane = () =>
    new Promise<void>(resolve => {
      const socket = connect({ port, host: '127.0.0.1' })
      const timer = setTimeout(() => socket.destroy(), Math.max(0, left()))
      socket.once('connect', () => {
        result.opened++
        socket.write(first)
        socket.write(piece)
      })
      socket.on('data', () => {
        result.answers++
        if (isSequential) socket.write(piece)
      })
      socket.on('error', () => {})
      socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
    })

  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (left() > 0) {
        await lane()
        // A port that refuses would be asked in a tight loop.
        await new Promise(setImmediate)
      }
    }),
  )
  return result
}
