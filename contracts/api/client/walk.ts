/**
 * Walks all pages of a list without missing a campaign, however long it takes.
 *
 * Within one cache period all pages come from one snapshot. A long walk crosses from one snapshot to the next, and then
 * `X-Snapshot-Id` changes. If a campaign has left the list or moved in it meanwhile, all campaigns behind it have moved
 * up. A walk that simply continued would skip some. Therefore:
 *
 * - The walk keeps this invariant: every campaign that stays in the list, and does not change after the walk's `asOf`,
 *   has been seen or is at the present offset or behind it. (`asOf` is the earliest `X-Data-As-Of` of its pages. The
 *   next walk finds later changes.)
 * - Campaigns that do not change have the same order (launch date, id) in every snapshot. So after a crossing the walk
 *   goes back in the new snapshot until it finds campaigns that it has seen lately and that have not changed since then.
 *   It continues from there: unseen and unchanged campaigns are behind them. What has changed is read after the new
 *   snapshot was taken: otherwise a change that the snapshot shows already could be missing.
 * - If it finds none, or if too much has changed, it starts again in the new snapshot. It then forgets what it had seen, so
 *   that a burst of changes makes it start again only once.
 *
 * The number of pages limits all this. A walk that needs more rejects with `unstable_walk`.
 */
import type { Project } from './bodies.ts'
import type { Page } from './pages.ts'
import { createWalkReader, type WalkDependencies, type WalkEnd, type WalkReader } from './walk-reader.ts'

// How many seen campaigns are remembered: ten full pages.
const trailMax = 1000
// One anchor is not enough: it may have changed itself, and then it is not where it was.
const anchorsMin = 2

/** Yields the campaigns of every page, newest first. A campaign may come twice. Rejects with `ClientError`. */
export async function* walk(
  dependencies: WalkDependencies,
  updatedSince: number | null,
): AsyncGenerator<Project[], WalkEnd> {
  const { pageSize } = dependencies
  const reader = createWalkReader(dependencies, updatedSince)
  const trail = createTrail()
  let position: Position = start
  for (;;) {
    const { offset, snapshotId } = position
    const page = position.page ?? (await reader.pageAt(offset))
    if (snapshotId !== undefined && page.snapshotId !== snapshotId) {
      position = await positionAfterCrossing({ reader, pageSize, trail, crossing: offset })
      continue
    }
    if (offset === 0) trail.clear()
    trail.add(page)
    yield page.projects
    if (!page.hasMore) return reader.end()
    position = { offset: offset + pageSize, snapshotId: page.snapshotId }
  }
}

/** The position at which a walk continues. */
interface Position {
  offset: number
  /** The snapshot that the page must come from; undefined at the start of a list, where any snapshot will do. */
  snapshotId: string | undefined
  /** The page at this offset, if it has been read already. */
  page?: Page
}

const start: Position = { offset: 0, snapshotId: undefined }

interface Crossing {
  reader: WalkReader
  pageSize: number
  trail: Trail
  /** The offset of the first page that came from another snapshot. */
  crossing: number
}

async function positionAfterCrossing(crossed: Crossing): Promise<Position> {
  const { reader, crossing, pageSize, trail } = crossed
  // Going back one page leads to the start.
  if (crossing <= pageSize) return start
  let since = trail.earliest()
  for (;;) {
    const { lastAsOf, snapshotIds } = reader.span()
    // The new snapshot may be an older one, of another process.
    since = Math.min(since, lastAsOf)
    const changed = await reader.changesSince(since)
    if (changed === undefined) return start
    const position = await positionByAnchors(crossed, { since, snapshotIds }, changed)
    if (position !== undefined) return position
  }
}

/**
 * `known`: the moment since which the changes were read, and the snapshots that were taken before that. Undefined if a page
 * comes from another one, because a change that it shows may be missing in `changed`, or is as of an earlier moment, because
 * a change that it does not show yet may be missing.
 */
async function positionByAnchors(
  { reader, crossing, pageSize, trail }: Crossing,
  known: { since: number; snapshotIds: ReadonlySet<string> },
  changed: ReadonlySet<string>,
): Promise<Position | undefined> {
  let snapshotId: string | undefined
  let anchors = 0
  for (let offset = crossing - pageSize; offset > Math.max(0, crossing - trailMax); offset -= pageSize) {
    const page = await reader.pageAt(offset)
    snapshotId ??= page.snapshotId
    if (page.snapshotId !== snapshotId || !known.snapshotIds.has(snapshotId) || page.asOf < known.since) {
      return undefined
    }
    anchors += page.projects.filter(project => trail.holds(project) && !changed.has(project.id)).length
    if (anchors >= anchorsMin) return { offset, snapshotId, page }
  }
  return start
}

/** The campaigns that a walk has seen last. */
interface Trail {
  add(page: Page): void
  /** Whether the campaign is among them, with the same launch date, which determines its place in the order. */
  holds(project: Project): boolean
  /** The earliest `X-Data-As-Of` of their pages; Infinity if there are none. */
  earliest(): number
  clear(): void
}

function createTrail(): Trail {
  const seen = new Map<string, { launchDate: string | null; asOf: number }>()
  return {
    add({ projects, asOf }) {
      for (const { id, launch_date: launchDate } of projects) {
        seen.delete(id)
        seen.set(id, { launchDate, asOf })
        const [oldest] = seen.keys()
        if (seen.size > trailMax && oldest !== undefined) seen.delete(oldest)
      }
    },
    holds: ({ id, launch_date }) => seen.get(id)?.launchDate === launch_date,
    earliest: () => Math.min(...Array.from(seen.values(), ({ asOf }) => asOf)),
    clear: () => seen.clear(),
  }
}
