/** HTTP as raw bytes: for requests that no client library sends, and for responses as received. */

import { once } from 'node:events'
import { connect } from 'node:net'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import type { AnyResponse } from './shape.ts'

/** A repeated header is joined as fetch joins it. */
export type RawResponse = AnyResponse

export type RawConnection = Awaited<ReturnType<typeof connectRaw>>

const silenceMsMax = 20_000

export async function connectRaw(port: number) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.setTimeout(silenceMsMax, () => socket.destroy(new Error(`silent for ${silenceMsMax} ms`)))
  const chunks: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]()
  let received = ''

  async function receive(): Promise<boolean> {
    try {
      const { done, value } = await chunks.next()
      if (!done) received += value.toString('latin1')
      return !done
    } catch (error) {
      // The server has closed the connection while it was being written to.
      if (error instanceof Error && 'code' in error && /^E(CONNRESET|PIPE)$/.test(String(error.code)))
        return false
      throw error
    }
  }

  return {
    send: (bytes: string | Buffer) => void socket.write(bytes),
    /**
     * The next complete response, or `undefined` if the server closes the connection first. `bodiless`: a response to
     * HEAD. Rejects if nothing has arrived for 20 s.
     */
    async next({ bodiless = false } = {}): Promise<RawResponse | undefined> {
      for (;;) {
        const [response, rest] = firstResponse(received, bodiless)
        received = rest
        if (response !== undefined) return response
        if (!(await receive())) return undefined
      }
    },
    close: () => void socket.destroy(),
    /** Ends the connection at once, so that the server's next write fails. */
    reset: () => void socket.resetAndDestroy(),
  }
}

/**
 * Sends the bytes over one connection. Returns the responses when the expected number has arrived or the server has
 * closed the connection.
 */
export async function sendRaw(
  port: number,
  bytes: string | Buffer,
  { responses: expected = 1 }: { responses?: number } = {},
): Promise<RawResponse[]> {
  const connection = await connectRaw(port)
  connection.send(bytes)
  const responses: RawResponse[] = []
  while (responses.length < expected) {
    const response = await connection.next()
    if (response === undefined) break
    responses.push(response)
  }
  connection.close()
  return responses
}

/** The first response, if it is complete, and the text after it. */
function firstResponse(text: string, bodiless: boolean): [RawResponse | undefined, string] {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return [undefined, text]
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  const bodyEnd = end + 4 + (bodiless ? 0 : Number(headers.get('content-length') ?? 0))
  if (text.length < bodyEnd) return [undefined, text]
  const status = Number(statusLine.split(' ')[1])
  const body = text.slice(end + 4, bodyEnd)
  return [{ status, headers: Object.fromEntries(headers), body }, text.slice(bodyEnd)]
}

/** The bytes of a request with the credentials in two headers. The line has no version. */
export function rawRequest(line: string, { key, secret }: Credentials): string {
  return `${line} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nX-API-Secret: ${secret}\r\n\r\n`
}
