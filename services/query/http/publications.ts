/**
 * What the API says of itself, to everybody: its first page, its OpenAPI document, the place of its documentation, and
 * notices about the end of a version. Everything is built once for the addresses of the installation.
 */
import { apiTitle, openApiPath } from '../../../contracts/api/conventions.ts'
import {
  documentationUrlOf,
  type PublicAddresses,
  type PublishedDocument,
  publishedOpenApi,
  withoutSlash,
} from '../../../contracts/api/published-openapi.ts'
import { type Service, serviceBodySchema } from '../../../contracts/api/schemas.ts'
import type { ApiVersion } from '../../../contracts/api/versions.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import { weakTagOf } from '../cache/response-cache.ts'
import { createVersionNotices, type VersionNotices } from './version-notices.ts'

export interface Publications {
  /** Undefined: errors lead to the API's first page. */
  documentationUrl: string | undefined
  notices: VersionNotices
  /** The first page. `now` is in Unix milliseconds, as below. */
  service(now: number): CacheEntry
  openApi(now: number): CacheEntry
}

export interface PublicationsDependencies {
  /** Asked at each request: an embedded service learns its own addresses only when its ports listen. */
  addresses: () => PublicAddresses
  versions: readonly ApiVersion[]
  document: PublishedDocument
}

// These bodies change only with another program or other settings.
const cacheMs = 300_000

/** Creates the publications. Each call returns those of the present addresses. */
export function createPublications({
  addresses,
  versions,
  document,
}: PublicationsDependencies): () => Publications {
  let made:
    | { apiUrl: string | undefined; portalUrl: string | undefined; publications: Publications }
    | undefined
  return () => {
    const { apiUrl, portalUrl } = addresses()
    if (made === undefined || made.apiUrl !== apiUrl || made.portalUrl !== portalUrl) {
      made = { apiUrl, portalUrl, publications: publicationsFor({ apiUrl, portalUrl }, versions, document) }
    }
    return made.publications
  }
}

function publicationsFor(
  addresses: PublicAddresses,
  versions: readonly ApiVersion[],
  document: PublishedDocument,
): Publications {
  const { portalUrl } = addresses
  const changesUrl = portalUrl === undefined ? undefined : `${withoutSlash(portalUrl)}/changes`
  return {
    documentationUrl: documentationUrlOf(addresses),
    notices: createVersionNotices(versions, changesUrl),
    service: entryOf(serviceBodySchema.parse({ data: serviceFor(addresses, versions) })),
    openApi: entryOf(publishedOpenApi(document, addresses)),
  }
}

function serviceFor(addresses: PublicAddresses, versions: readonly ApiVersion[]): Service {
  const { apiUrl, portalUrl } = addresses
  // Where the paths of this service begin. Empty: relative to the address that was called.
  const root = apiUrl === undefined ? '' : rootOf(withoutSlash(apiUrl), versions)
  return {
    title: apiTitle,
    documentation_url: documentationUrlOf(addresses) ?? null,
    keys_url: portalUrl === undefined ? null : `${withoutSlash(portalUrl)}/access`,
    openapi_url: `${root}${openApiPath}`,
    versions: versions.map(({ name, basePath, deprecation }) => ({
      name,
      url: `${root}${basePath}`,
      deprecated_at: deprecation === null ? null : new Date(deprecation.since).toISOString(),
      sunset_at: deprecation?.sunset == null ? null : new Date(deprecation.sunset).toISOString(),
    })),
  }
}

/** A proxy may put a path of its own before that of the version. */
function rootOf(apiUrl: string, versions: readonly ApiVersion[]): string {
  const version = versions.find(({ basePath }) => apiUrl.endsWith(basePath))
  return version === undefined ? new URL(apiUrl).origin : apiUrl.slice(0, -version.basePath.length)
}

function entryOf(body: object): (now: number) => CacheEntry {
  const bytes = Buffer.from(JSON.stringify(body))
  const etag = weakTagOf(bytes)
  const rest = { body: bytes, etag, asOf: null, snapshotId: null, link: null }
  return now => ({ ...rest, createdAt: now, expiresAt: now + cacheMs })
}
