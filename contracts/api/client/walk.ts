/**
 * Walking all pages of a list so that nothing is missed, however long it takes.
 *
 * Pages hold still within a snapshot, which lasts for a cache period; a long walk crosses from one to the next, and
 * `X-Data-As-Of` changes. In between a campaign may have left the list or moved in it, and everything behind it has
 * moved up: a walk that just went on would skip as many. So it does not just go on:
 *
 * - It keeps this invariant: every campaign that stays in the list, and does not change after the walk's `asOf`, has
 *   been seen or stands at the present offset or behind it. (`asOf` is the earliest `X-Data-As-Of` of its pages: what
 *   changes after that is found by the next walk.)
 * - Campaigns that do not change stand in the same order (launch date, id) in every snapshot. So after a crossing it asks
 *   what has changed since `asOf`, goes back in the new snapshot until it meets campaigns that it has seen and that
 *   have not changed, and goes on from there: what is unseen and unchanged stands behind them.
 * - Where it meets none, or where so much has changed that there is no telling, it begins again in the new snapshot.
 *
 * All this is bounded by the number of pages read; a walk that would need more rejects with `unstable_walk`.
 */
import type { Project } from '../schemas.ts'
import type { Page } from './pages.ts'
import { createWalkReader, type WalkDependencies, type WalkEnd, type WalkReader } from './walk-reader.ts'

// Campaigns that are remembered, to be met again: ten full pages.
const trailMax = 1000
// One might have changed without its being known yet: a change that becomes visible after the horizon is stamped anew,
// but not at once.
const anchorsMin = 2

/** Yields the campaigns of every page, newest first; a campaign may come again. Rejects with `ClientError`. */
export async function* walk(
  dependencies: WalkDependencies,
  updatedSince: number | null,
): AsyncGenerator<Project[], WalkEnd> {
  const { pageSize } = dependencies
  const reader = createWalkReader(dependencies, updatedSince)
  const trail = createTrail()
  let place: Place = start
  for (;;) {
    const { offset, asOf } = place
    const page = place.page ?? (await reader.pageAt(offset))
    if (asOf !== undefined && page.asOf !== asOf) {
      place = await placeAfterCrossing({ reader, pageSize, trail, crossing: offset })
      continue
    }
    trail.add(page.projects)
    yield page.projects
    if (!page.hasMore) return reader.end()
    place = { offset: offset + pageSize, asOf: page.asOf }
  }
}

/** Where a walk goes on. */
interface Place {
  offset: number
  /** The snapshot that it must be in there; undefined at the start of a list: any. */
  asOf: number | undefined
  /** The page there, when it has been read already. */
  page?: Page
}

const start: Place = { offset: 0, asOf: undefined }

interface Crossing {
  reader: WalkReader
  pageSize: number
  trail: Trail
  /** The offset at which a page came from another snapshot than the one before it. */
  crossing: number
}

async function placeAfterCrossing(crossed: Crossing): Promise<Place> {
  const { reader, crossing, pageSize } = crossed
  // Going back one page is the start.
  if (crossing <= pageSize) return start
  for (;;) {
    const span = reader.span()
    const changed = await reader.changesSince(span.earliest)
    if (changed === undefined) return start
    const place = await placeByAnchors(crossed, { ...span, changed })
    if (place !== undefined) return place
  }
}

/** Undefined where the snapshot is one of which the changes may not tell. */
async function placeByAnchors(
  { reader, crossing, pageSize, trail }: Crossing,
  { earliest, latest, changed }: { earliest: number; latest: number; changed: ReadonlySet<string> },
): Promise<Place | undefined> {
  let asOf: number | undefined
  let anchors = 0
  for (let offset = crossing - pageSize; offset > Math.max(0, crossing - trailMax); offset -= pageSize) {
    const page = await reader.pageAt(offset)
    asOf ??= page.asOf
    if (page.asOf !== asOf || page.asOf < earliest || page.asOf > latest) return undefined
    anchors += page.projects.filter(project => trail.holds(project) && !changed.has(project.id)).length
    if (anchors >= anchorsMin) return { offset, asOf, page }
  }
  return start
}

/** What a walk has seen last. */
interface Trail {
  add(projects: readonly Project[]): void
  /** Whether the campaign is among them, with what its place in the order depends on. */
  holds(project: Project): boolean
}

function createTrail(): Trail {
  const launchDates = new Map<string, string | null>()
  return {
    add(projects) {
      for (const { id, launch_date } of projects) {
        launchDates.delete(id)
        launchDates.set(id, launch_date)
        const [oldest] = launchDates.keys()
        if (launchDates.size > trailMax && oldest !== undefined) launchDates.delete(oldest)
      }
    },
    holds: ({ id, launch_date }) => launchDates.get(id) === launch_date,
  }
}
