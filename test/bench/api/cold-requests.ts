/** The requests of the cold bench: paths whose answers are in no cache, the same in every run. Pure. */

import {
  formatListQuery,
  type ListParameters,
  listDefaults,
  sorts,
} from '../../../contracts/api/parameters.ts'
import { publicStatuses } from '../../../contracts/events/event.ts'

export interface ColdPaths {
  /** Distinct lists with varied sorts, statuses, categories, times and offsets. */
  lists: string[]
  /** Lists of all campaigns: the longest lists. */
  wholeLists: string[]
  /** Pages of one list, after its first page. */
  pages: string[]
  details: string[]
}

// A time before all changes, so that it excludes nothing. One millisecond of difference makes it another list.
const beforeAll = Date.UTC(2000, 0, 1)
const deepestPage = 2_000

/** `random` returns numbers from 0 to 1. */
export function coldPaths(
  { campaigns, categories, count }: { campaigns: number; categories: number; count: number },
  random: () => number,
): ColdPaths {
  const numbers = Array.from({ length: count }, (_, index) => index)
  const whole = (index: number): ListParameters => ({
    ...listDefaults,
    sort: sorts[index % sorts.length] ?? 'newest',
    updatedSince: beforeAll + index,
  })
  const below = (bound: number) => Math.floor(random() * bound)
  return {
    lists: numbers.map(index => {
      const filters = index % 4
      return listPath({
        ...whole(index + count),
        // A quarter of the lists has no filter, a quarter a status, a quarter a category, and a quarter both.
        status: filters % 2 === 1 ? (publicStatuses[below(publicStatuses.length)] ?? null) : null,
        category: filters >= 2 ? `Category ${below(categories)}` : null,
        sort: sorts[below(sorts.length)] ?? 'newest',
        offset: below(deepestPage),
      })
    }),
    wholeLists: numbers.map(index => listPath(whole(index))),
    pages: numbers.map(index => listPath({ ...listDefaults, offset: pageOffset(index, below(campaigns)) })),
    details: numbers.map(() => `/projects/campaign-${below(campaigns)}`),
  }
}

// The next pages in order, as a client that walks the list requests them, and now and then a random page.
function pageOffset(index: number, anywhere: number): number {
  return index % 5 === 4 ? anywhere : (index + 1) * listDefaults.limit
}

function listPath(parameters: ListParameters): string {
  return `/projects?${formatListQuery(parameters)}`
}
