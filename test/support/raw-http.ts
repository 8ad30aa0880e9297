/** HTTP as bytes: for requests that no client library would send, and answers as they are on the wire. */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface RawResponse {
  status: number
  /** Names in lower case. A header given twice stands once, its values joined as fetch joins them. */
  headers: Record<string, string>
  body: string
}

export interface RawConnection {
  send(bytes: string | Buffer): void
  /**
   * The next whole response, or `undefined` where the server ends the connection first. `bodiless`: one to HEAD. Rejects
   * when nothing has moved for 20 s.
   */
  next(options?: { bodiless?: boolean }): Promise<RawResponse | undefined>
  close(): void
}

const silenceMsMax = 20_000

export async function connectRaw(port: number): Promise<RawConnection> {
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
      // The server has closed while bytes of ours were on their way.
      if (error instanceof Error && 'code' in error && /^E(CONNRESET|PIPE)$/.test(String(error.code)))
        return false
      throw error
    }
  }

  return {
    send: bytes => void socket.write(bytes),
    async next({ bodiless = false } = {}) {
      for (;;) {
        const [response, rest] = firstResponse(received, bodiless)
        received = rest
        if (response !== undefined) return response
        if (!(await receive())) return undefined
      }
    },
    close: () => socket.destroy(),
  }
}

/**
 * Sends the bytes over one connection and returns the responses, once the expected number has arrived or the server has
 * ended it.
 */
export async function exchangeRaw(
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

/** The first response, where it is whole, and the text after it. */
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
