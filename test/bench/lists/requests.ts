/** The requests of the list bench: list pages that no cache has, the same in every run except for the time. Pure. */
import {
  formatListQuery,
  type ListParameters,
  listDefaults,
  sorts,
} from '../../../contracts/api/parameters.ts'
import { publicStatuses } from '../../../contracts/events/event.ts'

export interface ListRequests {
  /** What changed in the last minute. */
  recent: string[]
  /** By status, by category or by both, and a page near the start. */
  filtered: string[]
  /** All campaigns, the first page. */
  whole: string[]
  /** All campaigns, a page at any place in the list. */
  deep: string[]
}

// A moment before all changes excludes nothing. One millisecond of difference makes it another list.
const beforeAll = Date.UTC(2000, 0, 1)
const nearestMs = 5_000
const spanMs = 60_000
const shallowOffset = 500

/** `now`: Unix ms; `random` returns numbers from 0 to 1. */
export function listRequests(
  {
    campaigns,
    categories,
    count,
    now,
  }: { campaigns: number; categories: number; count: number; now: number },
  random: () => number,
): ListRequests {
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
  }
}
