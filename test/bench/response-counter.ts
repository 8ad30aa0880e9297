/** Tells where an HTTP response ends, by its `Content-Length`, and reads nothing of it but status and length. */

export interface ResponseCounter {
  /** Takes the next bytes of the connection; true where they end a response. Throws on another status. */
  take(chunk: Buffer): boolean
}

const headEnd = '\r\n\r\n'
const headBytesMax = 16 * 1024

/** For responses of one status that come one at a time: whatever follows the end of one in a chunk is an error. */
export function createResponseCounter(status: number): ResponseCounter {
  const statusLine = `HTTP/1.1 ${status} `
  let head = ''
  /** Bytes of the body that are to come; undefined while the head is. */
  let bodyBytesLeft: number | undefined

  function takeHead(chunk: Buffer): number {
    const end = chunk.indexOf(headEnd)
    // A head that is cut in two is rare, so it is put together as text and looked at again.
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
