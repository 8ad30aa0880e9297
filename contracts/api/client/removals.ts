/** Reads which campaigns are no longer public (`GET /removals`). */
import { limitMax } from '../parameters.ts'
import type { Removal, RemovalListBody } from './bodies.ts'
import { ClientError } from './errors.ts'
import { listIn, momentIn } from './pages.ts'
import type { Transport } from './transport.ts'

/** All removals since a moment. Times are Unix milliseconds. */
export interface Removals {
  removals: Removal[]
  /** They contain every removal up to this moment. */
  asOf: number
  /** From this moment on, none is missing. */
  keptSince: number
}

const crossingsMax = 5

/**
 * Reads all pages. `since`: Unix milliseconds; null: all that are kept. Null: the service does not tell removals.
 *
 * They come with the earliest first. So if the snapshot ends on the way, the reading goes on from the last one that it has: what comes
 * later in the list left later. A campaign that came back meanwhile is told all the same; its change has a later stamp.
 *
 * Rejects with `ClientError`.
 */
export async function readRemovals(
  transport: Transport,
  since: number | null,
  signal: AbortSignal | undefined,
): Promise<Removals | null> {
  const found: Removals = { removals: [], asOf: Infinity, keptSince: -Infinity }
  let from = since
  // Those that did not bring it on: more left in one millisecond than can be read from one snapshot.
  for (let crossings = 0; crossings < crossingsMax; ) {
    const end = await readOnce(transport, from, found, signal)
    if (end === null) return null
    if (end === 'whole') return found
    const last = found.removals.at(-1)
    const reached = last ? momentIn(last.updated_at, 'a removal without a valid updated_at') : from
    crossings = reached === from ? crossings + 1 : 0
    from = reached
  }
  throw new ClientError({
    code: 'unstable_walk',
    message: 'the pages of removals changed during every reading',
  })
}

/** Adds the pages of one snapshot. */
async function readOnce(
  transport: Transport,
  since: number | null,
  found: Removals,
  signal: AbortSignal | undefined,
): Promise<'whole' | 'moved' | null> {
  let snapshotId: string | null | undefined
  for (let offset = 0; ; offset += limitMax) {
    const page = await pageAt(transport, offset, since, signal)
    if (page === null) return null
    snapshotId ??= page.snapshotId
    if (page.snapshotId !== snapshotId) return 'moved'
    found.removals.push(...page.data)
    found.asOf = Math.min(found.asOf, page.asOf)
    found.keptSince = Math.max(found.keptSince, page.keptSince)
    if (!page.hasMore) return 'whole'
  }
}

async function pageAt(
  transport: Transport,
  offset: number,
  since: number | null,
  signal: AbortSignal | undefined,
) {
  const from = since === null ? '' : `&since=${new Date(since).toISOString()}`
  const path = `/removals?limit=${limitMax}&offset=${offset}${from}`
  try {
    const { headers, text } = await transport.get(path, { signal })
    const { data, pagination, kept_since } = listIn<RemovalListBody>(text, 'removals')
    return {
      data,
      hasMore: pagination.has_more,
      asOf: momentIn(headers.get('x-data-as-of'), 'removals without a valid X-Data-As-Of'),
      keptSince: momentIn(kept_since, 'removals without a valid kept_since'),
      snapshotId: headers.get('x-snapshot-id'),
    }
  } catch (error) {
    // Switched off, or a service of an earlier version.
    if (error instanceof ClientError && error.code === 'not_found') return null
    throw error
  }
}
