/** What Node's parser lets through and RFC 9112 does not. Pure. */
import type { IncomingMessage } from 'node:http'

/**
 * Whether the request is HTTP/1.1 with one `Host`, or HTTP/1.0 with at most one. Node would answer a missing one itself,
 * bare, so it is told not to look; of two it keeps the first; and its parser knows versions that the server does not speak.
 */
export function isWellFormed({
  httpVersion,
  rawHeaders,
}: Pick<IncomingMessage, 'httpVersion' | 'rawHeaders'>) {
  const hosts = countOfHeader(rawHeaders, 'host')
  return httpVersion === '1.1' ? hosts === 1 : httpVersion === '1.0' && hosts <= 1
}

/** How often a header is given, in Node's raw list of names and values. `name` is in lower case. */
export function countOfHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let place = 0; place < rawHeaders.length; place += 2) {
    const given = rawHeaders[place]
    if (given?.length === name.length && given.toLowerCase() === name) count++
  }
  return count
}
