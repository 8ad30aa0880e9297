/** What the headers of a request say: whether it is well-formed, and which bytes it asks for (RFC 9110). Pure. */
import type { IncomingMessage } from 'node:http'

/** Whether a tag in `If-None-Match` matches, by the weak comparison. */
export function isNoneMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  const opaque = etag.replace(/^W\//, '')
  return ifNoneMatch.split(',').some(tag => tag.trim().replace(/^W\//, '') === opaque)
}

/** Both ends are of the range. */
export interface ByteRange {
  start: number
  end: number
}

/**
 * The part that `Range` asks for; undefined for the whole: so it is for several ranges, and for what is no range. `end` is the last byte, as in
 * `Content-Range`.
 */
export function rangeOf(range: string | undefined, bytes: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(range?.trim() ?? '') ?? []
  if (first === '' && last === '') return undefined
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first)
  const end = first === '' || last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  if (last !== '' && first !== '' && Number(last) < start) return undefined
  return start > end ? 'unsatisfiable' : { start, end }
}

/* Rejects what Node's parser accepts but RFC 9112 forbids. Pure. */

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
