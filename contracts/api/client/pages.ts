/** List requests: their paths, and their parsed responses. Pure. */
import { basePath } from '../conventions.ts'
import { formatListQuery, type ListParameters, listDefaults, readTimestamp } from '../parameters.ts'
import { freshMs, lifetimeMs } from './answers.ts'
import type { Project, ProjectListBody, RemovalListBody } from './bodies.ts'
import { ClientError } from './errors.ts'
import { wholeNumber } from './pacer.ts'
import type { Answer } from './transport.ts'

/** A page of a walk. Times are Unix milliseconds. */
export interface Page {
  projects: Project[]
  /** The total of the whole list. */
  total: number
  hasMore: boolean
  /** The snapshot contains every change up to this moment of the service's clock. */
  asOf: number
  /** Identifies the snapshot. Two snapshots may have the same `asOf` and different campaigns. */
  snapshotId: string
  /** The digest of all campaigns at the moment of the snapshot; null if the page has none. */
  digest: string | null
  /** The snapshot was taken at this moment or later, by the client's clock. */
  takenAt: number
  /** The snapshot was taken before this moment, by the client's clock. */
  receivedAt: number
  /** Until then the same query returns the same snapshot, by the client's clock. */
  freshUntil: number
  /** No answer of the service is older, in milliseconds. */
  lifetimeMs: number
}

// The documented cache period of lists: the maximum age of a response without an `Age`.
const cacheSecondsMax = 60

/** A new snapshot may look this old: ages are whole seconds, rounded up, and `pageOf` adds one second. */
export const newMsMax = 2000

/** The path of a list request, relative to the base. */
export function listPath(parameters: Partial<ListParameters>): string {
  // An undefined parameter counts as left out.
  const given = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined))
  const query = formatListQuery({ ...listDefaults, ...given })
  return query === '' ? '/projects' : `/projects?${query}`
}

/** Parses the page of a list response. Throws `unexpected_response`. */
export function pageOf({ headers, text, sentAt }: Answer, receivedAt: number): Page {
  const { data, pagination } = listIn<ProjectListBody>(text, 'a list')
  const watermark = headers.get('x-data-as-of')
  const asOf = momentIn(watermark, 'a list without a valid X-Data-As-Of')
  const ageSeconds = wholeNumber(headers.get('age')) ?? cacheSecondsMax
  return {
    projects: data,
    total: pagination.total,
    hasMore: pagination.has_more,
    asOf,
    // Earlier versions of the service do not name their snapshots.
    snapshotId: headers.get('x-snapshot-id') ?? String(watermark),
    digest: headers.get('x-data-digest'),
    // One second more, because the service may show the tables as they were a second before.
    takenAt: sentAt - (ageSeconds + 1) * 1000,
    receivedAt,
    freshUntil: receivedAt + freshMs(headers),
    lifetimeMs: lifetimeMs(headers) ?? cacheSecondsMax * 1000,
  }
}

/** Parses a JSON object as this body. It does not check the fields. */
export function bodyOf<Body extends object>(text: string): Partial<Body> {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null) return body
  } catch {
    // The error below reports it.
  }
  throw unexpected('a body that is not a JSON object')
}

/** Parses a page. Throws `unexpected_response`; `name` says of what. */
export function listIn<Body extends ProjectListBody | RemovalListBody>(text: string, name: string): Body {
  const body = bodyOf<Body>(text)
  if (Array.isArray(body.data) && Number.isInteger(body.pagination?.total)) return body as Body
  throw unexpected(`${name} without data or pagination`)
}

/** The error for a response that this API does not send. */
export function unexpected(what: string): ClientError {
  const hint = `Check baseUrl: it must be the address of the API, which ends in ${basePath}`
  return new ClientError({
    code: 'unexpected_response',
    message: `not a response of this API: ${what}. ${hint}`,
  })
}

/** Parses a moment of a response to Unix milliseconds. Throws `unexpected_response`; `without` says what the response is then. */
export function momentIn(text: string | null | undefined, without: string): number {
  const moment = readTimestamp(text ?? '')
  if (moment === undefined) throw unexpected(without)
  return moment
}

/** Parses a moment given by the consumer to Unix milliseconds. Throws `invalid_parameter`. */
export function momentOf(text: string, name: string): number {
  const moment = readTimestamp(text)
  if (moment !== undefined) return moment
  throw new ClientError({ code: 'invalid_parameter', message: `${name} is not an ISO 8601 timestamp` })
}
