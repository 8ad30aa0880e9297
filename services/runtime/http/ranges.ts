/** What a request asks for of bytes that the client may have already, in whole or in part (RFC 9110). Pure. */

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
