/** Rejects what Node's parser accepts but RFC 9112 forbids. Pure. */
import type { IncomingMessage } from 'node:http'

/**
 * Whether the request is HTTP/1.1 with exactly one `Host`, or HTTP/1.0 with at most one. Node's own check is off,
 * because it would answer a missing `Host` without the API's headers. Node also accepts a second `Host`, of which it
 * keeps the first, and HTTP versions that the server does not support.
 */
export function isWellFormed({
  httpVersion,
  rawHeaders,
}: Pick<IncomingMessage, 'httpVersion' | 'rawHeaders'>) {
  const hosts = countOfHeader(rawHeaders, 'host')
  return httpVersion === '1.1' ? hosts === 1 : httpVersion === '1.0' && hosts <= 1
}

/** Counts how often a header occurs in Node's raw list of names and values. `name` is in lower case. */
export function countOfHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let place = 0; place < rawHeaders.length; place += 2) {
    const given = rawHeaders[place]
    if (given?.length === name.length && given.toLowerCase() === name) count++
  }
  return count
}
