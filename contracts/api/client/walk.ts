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
 *   asks what has changed since `asOf`, and goes back in the new snapshot until it finds campaigns that it has seen and
 *   that have not changed. It continues from there: unseen and unchanged campaigns are behind them. The changes must be
 *   read after the new snapshot was taken, or one of them may be missing that the snapshot shows already.
 * - If it finds none, or if too much has changed, it starts again in the new snapshot.
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
    trail.add(page.projects)
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
  const { reader, crossing, pageSize } = crossed
  // Going back one page leads to the start.
  if (crossing <= pageSize) return start
  for (;;) {
    const span = reader.span()
    const changed = await reader.changesSince(span.earliest)
    if (changed === undefined) return start
    const position = await positionByAnchors(crossed, span.snapshotIds, changed)
    if (position !== undefined) return position
  }
}

/**
 * `known`: the snapshots that were taken before the changes were read. Undefined if a page comes from another one, because a
 * change that it shows may be missing in `changed`.
 */
async function positionByAnchors(
  { reader, crossing, pageSize, trail }: Crossing,
  known: ReadonlySet<string>,
  changed: ReadonlySet<string>,
): Promise<Position | undefined> {
  let snapshotId: string | undefined
  let anchors = 0
  for (let offset = crossing - pageSize; offset > Math.max(0, crossing - trailMax); offset -= pageSize) {
    const page = await reader.pageAt(offset)
    snapshotId ??= page.snapshotId
    if (page.snapshotId !== snapshotId || !known.has(snapshotId)) return undefined
    anchors += page.projects.filter(project => trail.holds(project) && !changed.has(project.id)).length
    if (anchors >= anchorsMin) return { offset, snapshotId, page }
  }
  return start
}

/** The campaigns that a walk has seen last. */
interface Trail {
  add(projects: readonly Project[]): void
  /** Whether the campaign is among them, with the same launch date, which determines its place in the order. */
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
