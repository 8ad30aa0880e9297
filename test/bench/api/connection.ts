/** One connection of a load. It sends one request at a time, and reads the status and the end of each response. */
import { connect, type Socket } from 'node:net'
import { createResponseCounter } from './response-counter.ts'

export interface ConnectionOptions {
  /** The only status that counts as an answer. */
  status: number
  onAnswer: (socket: Socket) => void
  /** Called on any other status, and if the connection breaks. */
  onFailure: (error: Error) => void
}

const chunkBytes = 256 * 1024

export function openConnection(
  target: URL,
  { status, onAnswer, onFailure }: ConnectionOptions,
  buffer: Buffer = Buffer.allocUnsafe(chunkBytes),
): Socket {
  const counter = createResponseCounter(status)
  const socket = connect({
    host: target.hostname,
    port: Number(target.port),
    noDelay: true,
    onread: {
      buffer,
      callback(bytes, read) {
        try {
          // Only one request is in flight, so at most one response ends here.
          if (counter.take(Buffer.from(read.buffer, read.byteOffset, bytes))) onAnswer(socket)
        } catch (error) {
          onFailure(error instanceof Error ? error : new Error(String(error)))
        }
        return true
      },
    },
  })
  socket.on('error', onFailure)
  socket.on('end', () => onFailure(new Error(`${target} closed a connection`)))
  return socket
}

export function requestText(target: URL, headers: Record<string, string>): string {
  const { host, pathname, search } = target
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`
}
