/** List requests: their paths, and their answers as values. Pure. */
import { formatListQuery, type ListParameters, listDefaults, readTimestamp } from '../parameters.ts'
import type { Project, ProjectListBody } from '../schemas.ts'
import { freshMs } from './answers.ts'
import { ClientError } from './errors.ts'
import { wholeNumber } from './pacer.ts'
import type { Answer } from './transport.ts'

/** Which campaigns, by what they are. Null or left out: all. */
export type Filter = Partial<Pick<ListParameters, 'status' | 'category'>>

/** A page of a walk. Times are Unix milliseconds. */
export interface Page {
  projects: Project[]
  /** Of the whole list. */
  total: number
  hasMore: boolean
  /** Every change up to this moment was in the page's snapshot. By the service's clock; names the snapshot. */
  asOf: number
  /** The snapshot was taken at this moment or after it, by the client's clock. */
  takenAt: number
  /** Until when the same query would be answered from the same snapshot, by the client's clock. */
  freshUntil: number
}

// The cache period of lists in the API's text: how old an answer without an `Age` may be.
const cacheSecondsMax = 60

/** The path of a list request, below the base. */
export function listPath(parameters: Partial<ListParameters>): string {
  // An undefined parameter is one that was left out.
  const given = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined))
  const query = formatListQuery({ ...listDefaults, ...given })
  return query === '' ? '/projects' : `/projects?${query}`
}

/** The page in an answer to a list request. Throws `unexpected_response`. */
export function pageOf({ headers, text, sentAt }: Answer, receivedAt: number): Page {
  const { data, pagination } = bodyOf<ProjectListBody>(text)
  const asOf = readTimestamp(headers.get('x-data-as-of') ?? '')
  if (asOf === undefined) throw unexpected('a list without a readable X-Data-As-Of')
  if (!Array.isArray(data) || !pagination || !Number.isInteger(pagination.total)) {
    throw unexpected('a list without data or pagination')
  }
  const ageSeconds = wholeNumber(headers.get('age')) ?? cacheSecondsMax
  return {
    projects: data,
    total: pagination.total,
    hasMore: pagination.has_more,
    asOf,
    // A second more, for an age that somebody on the way has cut off.
    takenAt: sentAt - (ageSeconds + 1) * 1000,
    freshUntil: receivedAt + freshMs(headers),
  }
}

/** A JSON object that is taken for the body it should be: its fields still may be anything. */
export function bodyOf<Body extends object>(text: string): Partial<Body> {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null) return body
  } catch {
    // Said below.
  }
  throw unexpected('a body that is no JSON object')
}

export function unexpected(what: string): ClientError {
  return new ClientError({ code: 'unexpected_response', message: `not an answer of this API: ${what}` })
}

/** A moment that a consumer gives, as Unix milliseconds. Throws `invalid_parameter`. */
export function momentOf(text: string, name: string): number {
  const moment = readTimestamp(text)
  if (moment !== undefined) return moment
  throw new ClientError({ code: 'invalid_parameter', message: `${name} is not an ISO 8601 timestamp` })
}
