/**
 * What responses say about the end of the version that was called: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and
 * `Link`. Pure. The headers are built once, because every response asks for them.
 */
import type { ApiVersion, Deprecation } from '../../../contracts/api/versions.ts'
import type { ResponseHeaders } from './headers.ts'

export interface VersionNotices {
  /** The headers for a request target, or for the pattern of a route. Empty unless its version is deprecated. */
  headersOf(target: string): ResponseHeaders
  /** Whether such a target belongs to a deprecated version. */
  isDeprecated(target: string): boolean
}

const none: ResponseHeaders = Object.freeze({})

/** Creates the notices. `changesUrl`: the page that tells about versions. Without it only a successor is linked. */
export function createVersionNotices(
  versions: readonly ApiVersion[],
  changesUrl: string | undefined,
): VersionNotices {
  const notices = versions.flatMap(({ basePath, deprecation }) =>
    deprecation === null ? [] : { basePath, headers: headersFor(deprecation, changesUrl) },
  )
  // None is the usual case.
  if (notices.length === 0) return { headersOf: () => none, isDeprecated: () => false }
  const headersOf = (target: string) =>
    notices.find(({ basePath }) => isBelow(target, basePath))?.headers ?? none
  return { headersOf, isDeprecated: target => headersOf(target) !== none }
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
