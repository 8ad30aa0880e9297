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
import { firstPage } from '../endpoints/first-page.ts'
import { createVersionNotices } from './answer.ts'

export type Publications = ReturnType<ReturnType<typeof createPublications>>

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
) {
  function make(present: PublicAddresses) {
    const { portalUrl } = present
    const changesUrl = portalUrl === undefined ? undefined : `${withoutSlash(portalUrl)}/changes`
    return {
      ...present,
      /** Undefined: errors lead to the API's first page. */
      documentationUrl: documentationUrlOf(present),
      noticesOf: createVersionNotices(versions, changesUrl),
      /** The first page. */
      service: published(firstPage.bodyFor(present, versions)),
      openApi: published(publishedOpenApi(document, present)),
    }
  }
  let made: ReturnType<typeof make> | undefined
  return () => {
    const { apiUrl, portalUrl } = addresses()
    if (made?.apiUrl !== apiUrl || made?.portalUrl !== portalUrl) made = undefined
    made ??= make({ apiUrl, portalUrl })
    return made
  }
}

/** The argument of the result: Unix milliseconds. */
function published(body: object): (now: number) => CacheEntry {
  const text = JSON.stringify(body)
  const entry = entryOf(text, { asOf: null, snapshotId: null, link: null, createdAt: 0, expiresAt: 0 })
  return now => ({ ...entry, createdAt: now, expiresAt: now + cacheMs })
}
