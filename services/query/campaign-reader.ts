/**
 * The answers of the query service before any cache: statement, rows, presentation, schema, bytes.
 *
 * Every body goes through its schema before it is serialised, here and only here, so nothing outside the allowlist can
 * leave, whatever the tables hold.
 */
import { createHash } from 'node:crypto'
import { basePath } from '../../contracts/api/conventions.ts'
import { formatListQuery, type ListParameters } from '../../contracts/api/parameters.ts'
import {
  projectDetailBodySchema,
  projectListBodySchema,
  statsBodySchema,
} from '../../contracts/api/schemas.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { CampaignLists } from './campaign-lists.ts'
import type { CampaignRows } from './campaign-rows.ts'
import type { QueryAppOptions } from './options.ts'
import { presentProject, presentProjectDetail, presentStats } from './present.ts'
import type { CacheEntry } from './response-cache.ts'
import type { ProjectDetailRow, StatsRow } from './rows.ts'
import { projectDetailStatement, statsStatement } from './statements.ts'

export interface CampaignReader {
  projects(parameters: ListParameters): Promise<CacheEntry>
  /** Rejects with `NotFoundError` where no public campaign has this slug. */
  projectDetail(slug: string): Promise<CacheEntry>
  stats(): Promise<CacheEntry>
}

export interface CampaignReaderDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  lists: CampaignLists
  rows: CampaignRows
  options: Pick<QueryAppOptions, 'platformCurrency' | 'detailCacheMs' | 'statsCacheMs' | 'statementMsMax'>
  /** Unix milliseconds. */
  now: () => number
}

/** There is no such public resource. */
export class NotFoundError extends Error {
  override name = 'NotFoundError'
}

export function createCampaignReader(dependencies: CampaignReaderDependencies): CampaignReader {
  const { tables, databases, lists, rows, options, now } = dependencies

  return {
    async projects(parameters) {
      const { limit, offset } = parameters
      const { ids, total, asOf, createdAt, expiresAt } = await lists.page(parameters, { limit, offset })
      // A campaign that left the public since the snapshot is left out of its page rather than shown; total stays.
      const found = await rows.read(ids, asOf)
      const hasMore = offset + limit < total
      const body = projectListBodySchema.parse({
        data: found.map(row => presentProject(row, createdAt)),
        pagination: { total, limit, offset, has_more: hasMore },
      })
      return entryOf(body, { asOf, link: hasMore ? nextLink(parameters) : null, createdAt, expiresAt })
    },

    async projectDetail(slug) {
      const createdAt = now()
      const [row] = await tables.rows<ProjectDetailRow>(
        projectDetailStatement(slug, databases, options.statementMsMax),
      )
      if (row === undefined) throw new NotFoundError('no public campaign has this slug')
      const body = projectDetailBodySchema.parse({ data: presentProjectDetail(row, createdAt) })
      return entryOf(body, {
        asOf: null,
        link: null,
        createdAt,
        expiresAt: createdAt + options.detailCacheMs,
      })
    },

    async stats() {
      const createdAt = now()
      const [row] = await tables.rows<StatsRow>(statsStatement(databases, options.statementMsMax))
      if (row === undefined) throw new Error('the statistics statement returned no row')
      const body = statsBodySchema.parse({ data: presentStats(row, options.platformCurrency) })
      return entryOf(body, { asOf: null, link: null, createdAt, expiresAt: createdAt + options.statsCacheMs })
    },
  }
}

function entryOf(body: object, rest: Omit<CacheEntry, 'body' | 'etag'>): CacheEntry {
  const bytes = Buffer.from(JSON.stringify(body))
  return { body: bytes, etag: weakTagOf(bytes), ...rest }
}

// Weak, because a proxy may send the same answer in another encoding.
function weakTagOf(bytes: Buffer): string {
  return `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
}

function nextLink(parameters: ListParameters): string {
  const next = formatListQuery({ ...parameters, offset: parameters.offset + parameters.limit })
  return `<${basePath}/projects?${next}>; rel="next"`
}
