/**
 * The loop that the README describes to API consumers, as a consumer would write it. Its rules:
 * - The first page's `X-Data-As-Of` is the next `updated_since`.
 * - It counts only if all pages of the walk have the same `X-Snapshot-Id`. Otherwise the walk is repeated from the old
 *   watermark.
 * - To find what is no longer public, walk everything into a new copy, and continue from that walk's watermark.
 */
import type { Project } from '../../contracts/api/schemas.ts'
import type { ProjectListBody } from '../../services/query/endpoints/projects.ts'

export interface Place {
  copy: Map<string, Project>
  /** Null: nothing was walked yet. */
  since: string | null
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
  let first: string | undefined
  const since = place.since === null ? '' : `&updated_since=${place.since}`
  for (let offset = 0, hasMore = true; hasMore; offset += pageSize) {
    const response = await insist(`/projects?limit=${pageSize}&offset=${offset}${since}`, settings)
    const { data, pagination } = (await response.json()) as ProjectListBody
    for (const project of data) place.copy.set(project.id, project)
    const asOf = response.headers.get('x-data-as-of') ?? ''
    first ??= asOf
    snapshots.add(response.headers.get('x-snapshot-id') ?? asOf)
    hasMore = pagination.has_more
  }
  if (onCrossing === 'take it' || snapshots.size === 1) place.since = first ?? ''
}

/** Asks until there is an answer. */
async function insist(path: string, { get, wait }: LoopSettings): Promise<Response> {
  for (;;) {
    const response = await get(path).catch(() => undefined)
    if (response?.ok) return response
    await wait(1_000 * Number(response?.headers.get('retry-after') ?? 2))
  }
}
