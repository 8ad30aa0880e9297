/**
 * Requests for lists and details that no cache has, the same in every run except for the time; and how long an answer takes.
 */
import {
  formatListQuery,
  type ListParameters,
  listDefaults,
  sorts,
} from '../../../contracts/api/parameters.ts'
import { publicStatuses } from '../../../contracts/events/event.ts'
import { randomOf } from '../../support/runner/random.ts'

export interface Requests {
  /** What changed in the last minute. */
  recent: string[]
  /** By status, by category or by both, and a page near the start. */
  filtered: string[]
  /** All campaigns, the first page. */
  whole: string[]
  /** All campaigns, a page at any place in the list. */
  deep: string[]
  details: string[]
}

// A moment before all changes excludes nothing. One millisecond of difference makes it another list.
const beforeAll = Date.UTC(2000, 0, 1)
const nearestMs = 5_000
const spanMs = 60_000
const shallowOffset = 500
const categories = 15
const seed = 20_180_101

/** `count` requests of each kind. */
export function uncachedRequests({ campaigns, count }: { campaigns: number; count: number }): Requests {
  const random = randomOf(seed)
  const now = Date.now()
  const below = (bound: number) => Math.floor(random() * bound)
  let lists = 0
  const many = (parameters: (index: number) => Partial<ListParameters>) =>
    Array.from({ length: count }, (_, index) => {
      lists++
      const sort = sorts[index % sorts.length] ?? 'newest'
      return `/projects?${formatListQuery({ ...listDefaults, sort, updatedSince: beforeAll + lists, ...parameters(index) })}`
    })
  return {
    recent: many(index => ({ updatedSince: now - nearestMs - Math.floor((index * spanMs) / count) })),
    filtered: many(index => ({
      status: index % 3 === 0 ? null : (publicStatuses[below(publicStatuses.length)] ?? null),
      category: index % 3 === 1 ? null : `Category ${below(categories)}`,
      offset: below(shallowOffset),
    })),
    whole: many(() => ({})),
    deep: many(() => ({ offset: below(campaigns) })),
    details: Array.from({ length: count }, () => `/projects/campaign-${below(campaigns)}`),
  }
}

/** How a client reaches the API. */
export interface Api {
  apiUrl: string
  headers: Record<string, string>
}

const answerMsMax = 240_000

/** Throws on any status but 200. */
export async function millisecondsOf({ apiUrl, headers }: Api, path: string): Promise<number> {
  const startedMs = performance.now()
  const response = await fetch(apiUrl + path, { headers, signal: AbortSignal.timeout(answerMsMax) })
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
  return performance.now() - startedMs
}
