/**
 * What a resource of the API is. Each one is a file beside this one: its path, parameters, cache time, statement, schema,
 * presenter and example. The router, the OpenAPI document, the direct answers and the tests iterate over them (all.ts).
 *
 * Every body is parsed by its schema before it is serialised, and only here. So no field outside the allowlist can leave,
 * whatever the tables hold.
 */
import type { z } from 'zod'
import { basePath } from '../../../contracts/api/conventions.ts'
import type { ErrorCode } from '../../../contracts/api/errors.ts'
import type { ParameterFault } from '../../../contracts/api/parameters.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { type CacheEntry, entryOf } from '../cache/response-cache.ts'
import type { CampaignRows } from '../campaigns/campaign-rows.ts'
import type { CampaignLists } from '../lists/campaign-lists.ts'
import type { ListFollower } from '../lists/list-follower.ts'
import type { ApiConfig } from '../options.ts'

/** What the OpenAPI document says of a resource, and where it is. */
export interface Operation {
  /** Below the base path, as in OpenAPI: `/projects/{slug}`. */
  path: string
  /** A verb and a noun, such as `listProjects`. */
  operationId: string
  tag: 'Projects' | 'Exports' | 'Platform' | 'Service'
  summary: string
  /** Needs no key. */
  isPublic?: boolean
  parameters: { query?: z.ZodObject; path?: z.ZodObject }
  /** What the answer is, for people. */
  answer: string
  /** It is a page of a list: it has a watermark and a snapshot. */
  isPage?: boolean
  /** Its first page may have a digest. */
  hasDigest?: boolean
  schema: z.ZodType<object>
  example: object
  /** The errors that not every resource of its kind has. */
  failures: readonly ErrorCode[]
}

export interface Endpoint extends Operation {
  /** How long an answer is cached. */
  cacheMs: (config: ApiConfig) => number
  /** Returns what reads the parameters of a request. Pure, but for the answer's `load`. */
  open(parts: EndpointParts): (query: string, path: Readonly<Record<string, string>>) => Asked | Malformed
}

/** What endpoints read from. */
export interface EndpointParts {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  lists: CampaignLists
  rows: Pick<CampaignRows, 'read'>
  /** Which campaign has a slug, as far as that is known. */
  slugs: Pick<ListFollower, 'idOfSlug'>
  /** `threadsMax`: how many threads of ClickHouse a statement may use that no request waits for. Default: all. */
  options: Pick<
    ApiConfig,
    | 'PLEDGEVIEW_PLATFORM_CURRENCY'
    | 'PLEDGEVIEW_QUERY_MS_MAX'
    | 'PLEDGEVIEW_REMOVALS_DAYS'
    | 'PLEDGEVIEW_EXPORT_DIR'
  > & {
    threadsMax?: number
  }
}

/** A request that is well-formed. */
export interface Asked {
  /** The key of its answer in the cache: the same for every spelling. */
  key: string
  /** For the log. */
  parameters: object | null
  /** `owner`: the API key that asks. `now`: Unix milliseconds. Rejects with `NotFoundError`. */
  load(owner: string, now: number): Promise<Loaded>
}

export interface Malformed {
  fault: ParameterFault
}

/** A body, before its schema. What is not given comes from the endpoint: no watermark, and an age that begins now. */
export interface Loaded extends Partial<Omit<CacheEntry, 'body' | 'etag'>> {
  body: object
  /** Whether it takes so long that the next one should be computed before this one expires. */
  isSlow?: boolean
}

/** There is no such public resource. */
export class NotFoundError extends Error {
  override name = 'NotFoundError'
}

/** The finished response. `createdAt`: when its load began, Unix milliseconds. */
export function entryOfLoaded(
  { schema, cacheMs }: Pick<Endpoint, 'schema' | 'cacheMs'>,
  { body, isSlow: _, ...rest }: Loaded,
  { createdAt, options }: { createdAt: number; options: ApiConfig },
): CacheEntry {
  const expiresAt = createdAt + cacheMs(options)
  const parsed = schema.parse(body)
  assertAnswer(parsed, body, { createdAt, expiresAt, ...rest })
  return entryOf(parsed, {
    asOf: null,
    snapshotId: null,
    link: null,
    createdAt,
    expiresAt,
    ...rest,
  })
}

/** The pattern of the route: `/api/v1/projects/:slug`. */
export function patternOf({ path }: Pick<Operation, 'path'>): string {
  return basePath + path.replace(/\{(\w+)\}/g, ':$1')
}

/* What holds for each answer when it is made, before a cache has it (runtime/ops/invariants.ts). */

type Fields = Readonly<Record<string, unknown>>

interface Body {
  data?: Fields | readonly Fields[]
  pagination?: { total: number; limit: number; offset: number; has_more: boolean }
}

/** `parsed`: what its schema has left of the body. */
export function assertAnswer(
  parsed: object,
  body: object,
  { createdAt = 0, expiresAt = 0, digest }: Pick<Loaded, 'createdAt' | 'expiresAt' | 'digest'>,
): void {
  const { data = [], pagination } = parsed as Body
  const rows = [data].flat()
  const raw = [(body as Body).data ?? []].flat()
  const fields = (all: readonly Fields[]) => all.reduce((sum, row) => sum + Object.keys(row).length, 0)
  invariant('answer-allowlist', fields(raw) === fields(rows), () => ({ raw: Object.keys(raw[0] ?? {}) }))
  invariant('answer-lifetime', createdAt <= expiresAt, () => ({ createdAt, expiresAt }))
  for (const row of rows) {
    if ('pledged_amount' in row) assertCampaign(row)
    else if ('projects_total' in row) assertStats(row as Parameters<typeof assertStats>[0])
  }
  if (pagination) assertPage(rows, pagination, digest)
}

function assertPage(
  rows: readonly Fields[],
  page: NonNullable<Body['pagination']>,
  digest: string | undefined,
): void {
  const { total, limit, offset, has_more } = page
  const detail = () => ({ ...page, rows: rows.length, digest })
  invariant('page-size', rows.length <= Math.min(limit, Math.max(0, total - offset)), detail)
  invariant('page-end', has_more === offset + limit < total, detail)
  invariant('page-twice', new Set(rows.map(({ id }) => id)).size === rows.length, detail)
  invariant('page-digest', digest === undefined || Number.parseInt(digest, 10) >= total, detail)
  const isRemovals = rows.some(row => !('title' in row))
  const stamps = rows.map(row => String(row.updated_at))
  const isSorted = stamps.every((stamp, n) => stamp >= (stamps[n - 1] ?? ''))
  invariant('removals-order', !isRemovals || isSorted, detail)
}

function assertCampaign(row: Fields): void {
  const numbers = Object.entries(row).filter(([, value]) => typeof value === 'number')
  invariant('campaign-totals', numbers.every(isNotNegative), () => ({ id: row.id, numbers }))
  const rewards = (row.rewards ?? []) as {
    quantity_available: number | null
    quantity_remaining: number | null
  }[]
  const isWithin = rewards.every(
    ({ quantity_available: all, quantity_remaining: left }) =>
      (all === null) === (left === null) && (left ?? 0) >= 0 && (left ?? 0) <= (all ?? 0),
  )
  invariant('campaign-rewards', isWithin, () => ({ id: row.id, rewards }))
}

function assertStats(stats: Readonly<Record<string, number>> & { categories: readonly Fields[] }): void {
  const { projects_total = 0, projects_live = 0, projects_funded = 0, success_rate = 0 } = stats
  const { total_pledges = 0, total_backers = 0, total_creators = 0, categories } = stats
  const detail = () => ({ ...stats, categories: categories.length })
  const numbers = Object.entries(stats).filter(([, value]) => typeof value === 'number')
  const inCategories = categories.reduce((sum, { project_count }) => sum + Number(project_count), 0)
  invariant('stats-totals', numbers.every(isNotNegative), detail)
  invariant('stats-parts', projects_live + projects_funded <= projects_total, detail)
  invariant('stats-categories', inCategories === projects_total, detail)
  invariant('stats-people', total_backers <= total_pledges && total_creators <= projects_total, detail)
  invariant('stats-rate', success_rate <= 100, detail)
}

function isNotNegative([, value]: [string, unknown]): boolean {
  return Number(value) >= 0
}
