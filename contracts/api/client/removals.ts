/** Reads which campaigns are no longer public (`GET /removals`). */
import { limitMax } from '../parameters.ts'
import type { Removal, RemovalListBody } from './bodies.ts'
import { ClientError } from './errors.ts'
import { bodyOf, momentOf, unexpected } from './pages.ts'
import type { Transport } from './transport.ts'

/** All removals since a moment, from one snapshot. Times are Unix milliseconds. */
export interface Removals {
  removals: Removal[]
  /** They contain every removal up to this moment. */
  asOf: number
  /** From this moment on, none is missing. */
  keptSince: number
}

const triesMax = 5

/** Null: the service does not tell removals. `since`: Unix milliseconds; null: all that are kept. Rejects with `ClientError`. */
export async function readRemovals(
  transport: Transport,
  since: number | null,
  signal: AbortSignal | undefined,
): Promise<Removals | null> {
  for (let tries = 0; tries < triesMax; tries++) {
    const found = await readOnce(transport, since, signal)
    if (found !== 'moved') return found
  }
  throw new ClientError({
    code: 'unstable_walk',
    message: 'the pages of removals changed during every reading',
  })
}

async function readOnce(
  transport: Transport,
  since: number | null,
  signal: AbortSignal | undefined,
): Promise<Removals | null | 'moved'> {
  const removals: Removal[] = []
  let snapshotId: string | null | undefined
  for (let offset = 0; ; offset += limitMax) {
    const page = await pageAt(transport, offset, since, signal)
    if (page === null) return null
    snapshotId ??= page.snapshotId
    if (page.snapshotId !== snapshotId) return 'moved'
    removals.push(...page.data)
    if (!page.hasMore) return { removals, asOf: page.asOf, keptSince: page.keptSince }
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
    const { data, pagination, kept_since } = bodyOf<RemovalListBody>(text)
    if (!Array.isArray(data) || !pagination || kept_since === undefined)
      throw unexpected('removals without data, pagination or kept_since')
    return {
      data,
      hasMore: pagination.has_more,
      asOf: momentOf(headers.get('x-data-as-of') ?? '', 'X-Data-As-Of'),
      keptSince: momentOf(kept_since, 'kept_since'),
      snapshotId: headers.get('x-snapshot-id'),
    }
  } catch (error) {
    // Switched off, or a service of an earlier version.
    if (error instanceof ClientError && error.code === 'not_found') return null
    throw error
  }
}
