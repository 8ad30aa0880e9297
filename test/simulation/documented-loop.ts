/**
 * The loop that the README describes to API consumers, as a consumer would write it. Its rules:
 * - The first page's `X-Data-As-Of` is the next `updated_since`.
 * - It counts only if all pages of the walk have the same `X-Snapshot-Id`. Otherwise the walk is repeated from the old
 *   watermark.
 * - What is no longer public comes from `/removals`, which it reads first. Of the two watermarks the earlier one counts.
 */
import type { RemovalListBody } from '../../contracts/api/client/bodies.ts'
import type { Project } from '../../contracts/api/schemas.ts'
import type { ProjectListBody } from '../../services/query/endpoints/projects.ts'

export interface Place {
  copy: Map<string, Project>
  /** Null: nothing was walked yet. */
  since: string | null
  /** Whether everything that is gone was removed once. */
  isClean?: boolean
}

export interface LoopSettings {
  pageSize: number
  /** GET of a path below the base URL. */
  get: (path: string) => Promise<Response>
  wait: (ms: number) => Promise<void>
  /** What to do with a walk whose pages are not from one snapshot. The first choice is the README's. */
  onCrossing?: 'repeat it' | 'take it'
}

/** One poll: everything if the copy is empty, otherwise what has changed. */
export async function poll(place: Place, settings: LoopSettings): Promise<void> {
  const { pageSize, onCrossing = 'repeat it' } = settings
  const snapshots = new Set<string>()
  let first = place.since === null ? undefined : await removeGone(place, settings)
  let isFirst = true
  const since = place.since === null ? '' : `&updated_since=${place.since}`
  for (let offset = 0, hasMore = true; hasMore; offset += pageSize) {
    const response = await insist(`/projects?limit=${pageSize}&offset=${offset}${since}`, settings)
    const { data, pagination } = (await response.json()) as ProjectListBody
    for (const project of data) place.copy.set(project.id, project)
    const asOf = response.headers.get('x-data-as-of') ?? ''
    if (isFirst && (first === undefined || asOf < first)) first = asOf
    isFirst = false
    snapshots.add(response.headers.get('x-snapshot-id') ?? asOf)
    hasMore = pagination.has_more
  }
  if (onCrossing === 'take it' || snapshots.size === 1) place.since = first ?? ''
}

/** Deletes what is gone. Returns the watermark of pages from one snapshot. */
async function removeGone(place: Place, settings: LoopSettings): Promise<string> {
  const { copy } = place
  // A walk that was repeated may have brought what left before it began again.
  const since = place.isClean ? `&since=${place.since}` : ''
  for (;;) {
    const pages: { asOf: string; snapshotId: string }[] = []
    for (let offset = 0, hasMore = true; hasMore; offset += 100) {
      const response = await insist(`/removals?limit=100&offset=${offset}${since}`, settings)
      const { data, pagination } = (await response.json()) as RemovalListBody
      for (const { id, updated_at } of data) {
        const held = copy.get(id)
        if (held !== undefined && held.updated_at < updated_at) copy.delete(id)
      }
      const [asOf, snapshotId] = ['x-data-as-of', 'x-snapshot-id'].map(
        name => response.headers.get(name) ?? '',
      )
      pages.push({ asOf, snapshotId } as { asOf: string; snapshotId: string })
      hasMore = pagination.has_more
    }
    const [first] = pages
    if (first === undefined || new Set(pages.map(({ snapshotId }) => snapshotId)).size > 1) continue
    place.isClean = true
    return first.asOf
  }
}

/** Asks until there is an answer. */
async function insist(path: string, { get, wait }: LoopSettings): Promise<Response> {
  for (;;) {
    const response = await get(path).catch(() => undefined)
    if (response?.ok) return response
    await wait(1_000 * Number(response?.headers.get('retry-after') ?? 2))
  }
}
