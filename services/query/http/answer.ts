/** The answer from a cache entry, the error, and the headers of every answer. The app and the direct answers send the same ones. */
import type { ServerResponse } from 'node:http'
import {
  exposedHeaders,
  internalErrorRetrySeconds,
  methods,
  requestHeaders,
} from '../../../contracts/api/conventions.ts'
import { type ErrorBody, type ErrorCode, errors } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import type { ApiVersion, Deprecation } from '../../../contracts/api/versions.ts'
import { isNoneMatch } from '../../runtime/http/request-headers.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import type { RateDecision } from '../rate-limit/rate-limiter.ts'

export interface Answered {
  requestId: string
  decision: RateDecision
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
  const { requestId, decision, notices, ifNoneMatch, now } = answered
  const isKnown = isNoneMatch(ifNoneMatch, entry.etag)
  const headers = isKnown ? [] : ['content-type', jsonType, 'content-length', String(entry.body.length)]
  append(headers, commonHeaders(requestId, decision, now))
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

/* Refusals: error responses. Pure. */

/** An error response, without the headers that every response has. */
export interface Refusal {
  code: ErrorCode
  status: number
  headers: ResponseHeaders
  body: string
}

/** Headers that only the refusals of some codes have. */
const ownHeaders: Partial<Record<ErrorCode, ResponseHeaders>> = {
  unauthorized: { 'www-authenticate': 'Bearer realm="api"' },
  method_not_allowed: { allow: methods },
  internal_error: { 'retry-after': String(internalErrorRetrySeconds) },
}

/** Builds the refusal with this body. */
export function refusal(body: ErrorBody): Refusal {
  const { code } = body.error
  return {
    code,
    status: errors[code].status,
    headers: { 'content-type': jsonType, 'cache-control': 'no-store', ...ownHeaders[code] },
    body: JSON.stringify(errorBodySchema.parse(body)),
  }
}

/* The response headers of the API, as values. Pure. Times are Unix milliseconds unless stated otherwise. */

export type ResponseHeaders = Record<string, string>

export const jsonType = 'application/json; charset=utf-8'

/** The request headers that an answer to a key depends on, as `vary` names them. */
export const credentialHeaders = 'Authorization, X-API-Key, X-API-Secret'

/**
 * The headers of every response, with the limiter's counters under the API's own names and in the form of the IETF draft. All names are in
 * lower case, because they are looked up and merged by name.
 */
export function commonHeaders(
  requestId: string,
  { limit, windowMs, remaining, delayMs }: RateDecision,
  now: number,
): ResponseHeaders {
  const resetAt = delayMs === 0 ? Math.floor(now / 1000) : Math.ceil((now + delayMs) / 1000)
  return {
    'x-request-id': requestId,
    'access-control-allow-origin': '*',
    'access-control-expose-headers': exposedHeaders,
    'x-content-type-options': 'nosniff',
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(resetAt),
    'ratelimit-policy': `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`,
    ratelimit: `"default";r=${remaining};t=${Math.ceil(delayMs / 1000)}`,
  }
}

/** The headers of a preflight response. A browser may cache them for a day. */
export const preflightHeaders: ResponseHeaders = {
  'access-control-allow-methods': methods,
  'access-control-allow-headers': requestHeaders,
  'access-control-max-age': '86400',
  allow: methods,
}

/**
 * The headers of a cached response besides its link, sent with 200 and with 304. They tell how long the response is valid from when it
 * was computed, and how long ago that was; HTTP caches subtract the two (RFC 9111). The age is rounded up, so that no
 * cache keeps the response too long.
 */
function cacheHeaders(
  { etag, asOf, snapshotId, digest, createdAt, expiresAt }: CacheEntry,
  now: number,
): ResponseHeaders {
  const headers: ResponseHeaders = {
    'cache-control': `private, max-age=${Math.max(0, Math.floor((expiresAt - createdAt) / 1000))}`,
    age: String(Math.max(0, Math.ceil((now - createdAt) / 1000))),
    etag,
    vary: credentialHeaders,
  }
  if (asOf !== null) headers['x-data-as-of'] = asOf
  if (snapshotId !== null) headers['x-snapshot-id'] = snapshotId
  if (digest !== undefined) headers['x-data-digest'] = digest
  return headers
}

/*
 * What responses say about the end of the version that was called: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and
 * `Link`. Pure. The headers are built once, because every response asks for them.
 */

const none: ResponseHeaders = Object.freeze({})

/**
 * Returns the headers for a request target, or for the pattern of a route: empty unless its version is deprecated. `changesUrl`: the page
 * that tells about versions. Without it only a successor is linked.
 */
export function createVersionNotices(versions: readonly ApiVersion[], changesUrl: string | undefined) {
  const notices = versions.flatMap(({ basePath, deprecation }) =>
    deprecation === null ? [] : { basePath, headers: headersFor(deprecation, changesUrl) },
  )
  return (target: string) => notices.find(({ basePath }) => isBelow(target, basePath))?.headers ?? none
}

function headersFor(
  { since, sunset, successor }: Deprecation,
  changesUrl: string | undefined,
): ResponseHeaders {
  const links = [
    ...(changesUrl === undefined ? [] : [`<${changesUrl}>; rel="deprecation"; type="text/html"`]),
    ...(changesUrl === undefined || sunset === null
      ? []
      : [`<${changesUrl}>; rel="sunset"; type="text/html"`]),
    ...(successor === null ? [] : [`<${successor}>; rel="successor-version"`]),
  ]
  return Object.freeze({
    deprecation: `@${Math.floor(Date.parse(since) / 1000)}`,
    ...(sunset !== null && { sunset: new Date(sunset).toUTCString() }),
    ...(links.length > 0 && { link: links.join(', ') }),
  })
}

/** `v1` is not the version of `/api/v10`. A target may be absolute, as for a proxy. */
function isBelow(target: string, basePath: string): boolean {
  const path = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  if (!path.startsWith(basePath)) return false
  const next = path.charAt(basePath.length)
  return next === '' || next === '/' || next === '?' || next === '#'
}
