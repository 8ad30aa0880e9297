/** The answer from a cache entry. The app and the direct answers send the same one. */
import type { ServerResponse } from 'node:http'
import { isNoneMatch } from '../../runtime/http/ranges.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import type { Admission } from './admission.ts'
import { cacheHeaders, commonHeaders, jsonType, type ResponseHeaders, rateLimitHeaders } from './headers.ts'

export interface Answered {
  requestId: string
  admission: Pick<Admission, 'decision' | 'windowMs'>
  /** The headers about the end of the version that was called. */
  notices: ResponseHeaders
  ifNoneMatch: string | undefined
  /** Unix milliseconds. */
  now: number
}

/**
 * Sends the body of the entry, or 304 if the client has the same body already. The bytes are complete, so they go directly
 * to Node. This skips Fastify's handling of unknown bodies.
 */
export function sendEntry(response: ServerResponse, entry: CacheEntry, answered: Answered): void {
  const { requestId, admission, notices, ifNoneMatch, now } = answered
  const isKnown = isNoneMatch(ifNoneMatch, entry.etag)
  const headers = isKnown ? [] : ['content-type', jsonType, 'content-length', String(entry.body.length)]
  append(headers, commonHeaders(requestId))
  append(headers, rateLimitHeaders(admission.decision, { windowMs: admission.windowMs, now }))
  append(headers, entry.link === null ? notices : withLink(notices, entry.link))
  append(headers, cacheHeaders(entry, now))
  if (entry.link !== null && notices.link === undefined) headers.push('link', entry.link)
  response.writeHead(isKnown ? 304 : 200, headers)
  response.end(isKnown ? undefined : entry.body)
}

// Node takes names and values in one flat array, and then skips its own lookups. To merge the objects would cost more.
function append(flat: string[], headers: ResponseHeaders): void {
  for (const name in headers) flat.push(name, headers[name] ?? '')
}

/** If the notices have links too, these follow the link of the entry. */
function withLink(notices: ResponseHeaders, link: string): ResponseHeaders {
  return notices.link === undefined ? notices : { ...notices, link: `${link}, ${notices.link}` }
}
