/**
 * The versions of the API, and what is announced about the end of each.
 *
 * A version is deprecated as soon as it has a `deprecation` here. From then on its responses carry `Deprecation` (RFC 9745),
 * `Sunset` (RFC 8594) and `Link`, its operations are marked in the OpenAPI document, and its requests are counted, so that
 * the portal can show each account which of its keys still call it.
 */
import { basePath } from './conventions.ts'

export interface ApiVersion {
  /** As in the path. */
  name: string
  /** The path of all its resources. */
  basePath: string
  /** Null: the version is current. */
  deprecation: Deprecation | null
}

export interface Deprecation {
  /** New programs should not use the version from then on. ISO 8601; it may be in the future. */
  since: string
  /** The version may stop answering then. ISO 8601; null if that is not decided. */
  sunset: string | null
  /** The base path of the version to change to; null if there is none yet. */
  successor: string | null
}

export const versions: readonly ApiVersion[] = [{ name: 'v1', basePath, deprecation: null }]
