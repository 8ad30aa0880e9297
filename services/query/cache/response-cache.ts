/** The responses that are cached: finished bodies as bytes, with what their headers need. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
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

export const responses: CacheKind<CacheEntry> = {
  prefix: 'response:3:',
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
export function entryOf(body: object, rest: Omit<CacheEntry, 'body' | 'etag'>): CacheEntry {
  const bytes = Buffer.from(JSON.stringify(body))
  // Weak, because a proxy may send the same body in another encoding.
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  return { body: bytes, etag, ...rest }
}
