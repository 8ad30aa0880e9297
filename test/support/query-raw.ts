/** HTTP as bytes: for requests that no client library would send, and answers as they are on the wire. */
import { connect } from 'node:net'

export interface RawResponse {
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
}

/**
 * Sends the bytes over one connection and returns the responses, once the server has closed it or the expected number
 * has arrived. Rejects when nothing has moved for 10 s.
 */
export function exchangeRaw(
  port: number,
  bytes: string | Buffer,
  { responses = 1, bodiless = false }: { responses?: number; bodiless?: boolean } = {},
): Promise<RawResponse[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let received = ''
    const finish = () => {
      socket.destroy()
      resolve(parseResponses(received, bodiless))
    }
    socket.setTimeout(10_000, () => {
      socket.destroy()
      reject(new Error(`no answer within 10 s; so far: ${received.slice(0, 200)}`))
    })
    socket.on('error', reject)
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      if (parseResponses(received, bodiless).length >= responses) finish()
    })
    socket.on('end', finish)
    socket.write(bytes)
  })
}

/** The complete responses at the start of the text. `bodiless` when no response has a body (HEAD). */
export function parseResponses(text: string, bodiless = false): RawResponse[] {
  const responses: RawResponse[] = []
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return responses
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map(line => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const length = bodiless ? 0 : Number(headers['content-length'] ?? 0)
    const body = rest.slice(end + 4, end + 4 + length)
    if (body.length < length) return responses
    responses.push({ status: Number(statusLine.split(' ')[1]), headers, body })
    rest = rest.slice(end + 4 + length)
  }
}
