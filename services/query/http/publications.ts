/**
 * What the API says of itself, to everybody: its first page, its OpenAPI document, the place of its documentation, and
 * notices about the end of a version. Everything is built once for the addresses of the installation.
 */
import {
  documentationUrlOf,
  type PublicAddresses,
  type PublishedDocument,
  publishedOpenApi,
  withoutSlash,
} from '../../../contracts/api/published-openapi.ts'
import type { ApiVersion } from '../../../contracts/api/versions.ts'
import { type CacheEntry, entryOf } from '../cache/response-cache.ts'
import { service } from '../endpoints/service.ts'
import { createVersionNotices } from './answer.ts'

export type Publications = ReturnType<typeof publicationsFor>

// These bodies change only with another program or other settings.
const cacheMs = 300_000

/**
 * Creates the publications. Each call returns those of the present addresses: an embedded service learns its own only when its
 * ports listen.
 */
export function createPublications(
  addresses: () => PublicAddresses,
  versions: readonly ApiVersion[],
  document: PublishedDocument,
): () => Publications {
  let made: { for: PublicAddresses; publications: Publications } | undefined
  return () => {
    const { apiUrl, portalUrl } = addresses()
    if (made === undefined || made.for.apiUrl !== apiUrl || made.for.portalUrl !== portalUrl) {
      const present = { apiUrl, portalUrl }
      made = { for: present, publications: publicationsFor(present, versions, document) }
    }
    return made.publications
  }
}

function publicationsFor(
  addresses: PublicAddresses,
  versions: readonly ApiVersion[],
  document: PublishedDocument,
) {
  const { portalUrl } = addresses
  const changesUrl = portalUrl === undefined ? undefined : `${withoutSlash(portalUrl)}/changes`
  return {
    /** Undefined: errors lead to the API's first page. */
    documentationUrl: documentationUrlOf(addresses),
    noticesOf: createVersionNotices(versions, changesUrl),
    /** The first page. */
    service: published(service.bodyFor(addresses, versions)),
    openApi: published(publishedOpenApi(document, addresses)),
  }
}

/** The argument of the result: Unix milliseconds. */
function published(body: object): (now: number) => CacheEntry {
  const text = JSON.stringify(body)
  const entry = entryOf(text, { asOf: null, snapshotId: null, link: null, createdAt: 0, expiresAt: 0 })
  return now => ({ ...entry, createdAt: now, expiresAt: now + cacheMs })
}
