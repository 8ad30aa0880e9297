/**
 * What a resource of the API is. Each one is a file beside this one: its path, parameters, cache time, statement, schema,
 * presenter and example. The router, the OpenAPI document, the direct answers and the tests iterate over them (all.ts).
 *
 * Every body is parsed by its schema before it is serialised (open.ts), the campaigns of a page when their rows are read
 * (campaigns/campaign-fields.ts). So no field outside the allowlist can leave, whatever the tables hold.
 */
import type { z } from 'zod'
import { basePath } from '../../../contracts/api/conventions.ts'
import type { ErrorCode } from '../../../contracts/api/errors.ts'
import type { ParameterFault } from '../../../contracts/api/parameters.ts'
import type { Config } from '../../runtime/config.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import type { WrittenCampaign } from '../campaigns/campaign-fields.ts'
import type { CampaignRows } from '../campaigns/campaign-rows.ts'
import type { CampaignLists } from '../lists/campaign-lists.ts'
import type { ListFollower } from '../lists/list-follower.ts'
import type { Pagination } from './page.ts'

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
  cacheMs: (config: Config) => number
  /** Reads the parameters of a request. Pure, but for the answer's `load`. */
  read(query: string, path: Readonly<Record<string, string>>): Asked | { fault: ParameterFault }
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
  options: Config & { threadsMax?: number }
}

/** A request that is well-formed. */
export interface Asked {
  /** The key of its answer in the cache: the same for every spelling. */
  key: string
  /** For the log. */
  parameters: object | null
  /** `owner`: the API key that asks. `now`: Unix milliseconds. Rejects with `NotFoundError`. */
  load(parts: EndpointParts, owner: string, now: number): Promise<Loaded>
}

/** A page of campaigns that have passed their schema, and are text already. */
export interface WrittenPage {
  written: readonly WrittenCampaign[]
  pagination: Pagination
}

/** What a resource has. What is not given comes from the endpoint: no watermark, and an age that begins now. */
export interface Loaded extends Partial<Omit<CacheEntry, 'body' | 'etag'>> {
  /** Before its schema, unless it is a page of campaigns. */
  body: object | WrittenPage
  /** Whether it takes so long that the next one should be computed before this one expires. */
  isSlow?: boolean
}

/** There is no such public resource. */
export class NotFoundError extends Error {
  override name = 'NotFoundError'
}

/** The pattern of the route: `/api/v1/projects/:slug`. */
export function patternOf({ path }: Pick<Operation, 'path'>): string {
  return basePath + path.replace(/\{(\w+)\}/g, ':$1')
}
