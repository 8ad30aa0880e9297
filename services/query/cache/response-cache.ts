/** The responses that are cached: finished bodies as bytes, with what their headers need. */
import { createHash, hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { shownColumns } from '../../../contracts/api/schemas.ts'
import { createFairTurns, OverloadedError } from '../../runtime/async/fair-turns.ts'
import { within } from '../../runtime/async/sleep.ts'
import type { QueryAppOptions } from '../options.ts'
import type { Cache, CacheKind, Lifetime } from './cache.ts'

/** One finished response. Times are Unix milliseconds. */
export interface CacheEntry extends Lifetime {
  /** The body as it is sent. */
  body: Buffer
  /** The weak entity tag, with quotes and `W/`. */
  etag: string
  /** The watermark of the data (`X-Data-As-Of`), ISO 8601; null if the resource has none. */
  asOf: string | null
  /** The snapshot that the resource is a page of (`X-Snapshot-Id`); null if the resource is not a page. */
  snapshotId: string | null
  /** The `Link` header; null if there is none. */
  link: string | null
  /** `X-Data-Digest`, of the first page of a list. */
  digest?: string | undefined
}

export type ResponseCache = Cache<CacheEntry>

// The size of an entry besides its texts and its body.
const entryOverheadBytes = 256

const headerSchema = z.object({
  etag: z.string(),
  asOf: z.string().nullable(),
  snapshotId: z.string().nullable(),
  link: z.string().nullable(),
  digest: z.string().optional(),
})

// During an upgrade, processes of two versions run side by side. An answer of one may lack a field that the other promises.
const fields = hash('sha256', JSON.stringify(shownColumns), 'base64url').slice(0, 8)

export const responses: CacheKind<CacheEntry> = {
  prefix: `response:3:${fields}:`,
  bytesOf: ({ body, etag, asOf, snapshotId, link }) =>
    body.length +
    2 * (etag.length + (asOf?.length ?? 0) + (snapshotId?.length ?? 0) + (link?.length ?? 0)) +
    entryOverheadBytes,
  encode: async ({ body, etag, asOf, snapshotId, link, digest }) => ({
    header: { etag, asOf, snapshotId, link, digest },
    body,
  }),
  decode: async (header, body, lifetime) => ({ body, ...headerSchema.parse(header), ...lifetime }),
}

/** The finished response with this body, as bytes with their tag. */
export function entryOf(body: string, rest: Omit<CacheEntry, 'body' | 'etag'>): CacheEntry {
  const bytes = Buffer.from(body)
  // Weak, because a proxy may send the same body in another encoding.
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  return { body: bytes, etag, ...rest }
}

/*
 * Entries of the response cache, loaded in turn by API key. What this process has cached is answered at once. For
 * everything else a key waits for its turn, so a key with many uncached requests delays its own requests, and not those
 * of others.
 *
 * An entry has an answer or an error before its connection is closed, however many statements it needs and however long
 * each waits.
 */

export type CachedEntries = ReturnType<typeof createCachedEntries>

// Of the time after which a silent connection is closed. The rest is for the admission and the error.
const entryShare = 0.9

/**
 * Creates the entries of one app. No key has requests yet. The result returns the entry of the key from the cache, or loads it when the
 * API key of the request has a turn. It rejects with the error of the load, with that of the turn, or with `OverloadedError` if both
 * together take too long.
 */
export function createCachedEntries(cache: ResponseCache, options: QueryAppOptions) {
  const turns = createFairTurns({
    runningMax: options.uncachedMax,
    runningPerKeyMax: options.uncachedPerKeyMax,
    waitingPerKeyMax: options.waitingPerKeyMax,
    waitMsMax: options.turnMsMax,
  })
  const entryMsMax = entryShare * options.socketTimeoutMs
  // The work goes on if it is late, and keeps its turn, because its statements still run.
  const bounded = (entry: Promise<CacheEntry>) =>
    within(entryMsMax, entry, () => new OverloadedError(`no entry within ${entryMsMax} ms`))
  return (request: FastifyRequest, key: string, load: (owner: string) => Promise<CacheEntry>) => {
    const found = cache.find(key)
    if (found !== undefined) return found instanceof Promise ? bounded(found) : found
    const owner = request.admission?.apiKey?.key ?? ''
    const turn = { key: owner, isGone: () => request.raw.socket.destroyed }
    return bounded(turns.run(turn, () => cache.get(key, () => load(owner))))
  }
}
