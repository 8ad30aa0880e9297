/** Finds the end of an HTTP response by its `Content-Length`. Reads only the status and the length. */

export interface ResponseCounter {
  /** Takes the next bytes of the connection. Returns true if they end a response. Throws on another status. */
  take(chunk: Buffer): boolean
}

const headEnd = '\r\n\r\n'
const headBytesMax = 16 * 1024

/** For responses with one status that come one at a time: bytes after the end of a response in a chunk are an error. */
export function createResponseCounter(status: number): ResponseCounter {
  const statusLine = `HTTP/1.1 ${status} `
  let head = ''
  /** The missing bytes of the body; undefined until the head is complete. */
  let bodyBytesLeft: number | undefined

  function takeHead(chunk: Buffer): number {
    const end = chunk.indexOf(headEnd)
    // A split head is rare, so it is joined as text and parsed again.
    const known = head.length
    head += chunk.toString('latin1', 0, end < 0 ? chunk.length : end + headEnd.length)
    const whole = head.indexOf(headEnd)
    if (whole < 0) {
      if (head.length > headBytesMax) throw new Error('a response has no end of its head')
      return chunk.length
    }
    if (!head.startsWith(statusLine)) throw new Error(`answered ${head.slice(0, 200)}`)
    bodyBytesLeft = status === 304 ? 0 : lengthOf(head)
    head = ''
    return whole + headEnd.length - known
  }

  return {
    take(chunk) {
      const bodyStart = bodyBytesLeft === undefined ? takeHead(chunk) : 0
      if (bodyBytesLeft === undefined) return false
      bodyBytesLeft -= chunk.length - bodyStart
      if (bodyBytesLeft > 0) return false
      if (bodyBytesLeft < 0) throw new Error('more bytes came than the response has')
      bodyBytesLeft = undefined
      return true
    },
  }
}

function lengthOf(head: string): number {
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1]
  if (length === undefined) throw new Error('a response has no Content-Length')
  return Number(length)
}
