/**
 * Builds the responses of the query service without a cache: statement, rows, presentation, schema, bytes.
 *
 * Every body is parsed by its schema before it is serialised, and only here. So no field outside the allowlist can
 * leave, whatever the tables hold.
 */
import { basePath } from '../../../contracts/api/conventions.ts'
import { formatListQuery, type ListParameters } from '../../../contracts/api/parameters.ts'
import { projectDetailBodySchema, projectListBodySchema } from '../../../contracts/api/schemas.ts'
import type { Databases, Statement, Tables } from '../../shared/tables/port.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import { entryOf } from '../cache/response-cache.ts'
import type { CampaignLists } from '../lists/campaign-lists.ts'
import type { ListFollower } from '../lists/list-follower.ts'
import type { QueryAppOptions } from '../options.ts'
import { detailByIdStatement } from '../views/detail-by-id.ts'
import { presentProject, presentProjectDetail } from '../views/present.ts'
import type { CampaignBySlugRow, ProjectDetailRow } from '../views/rows.ts'
import { projectDetailRowOf } from '../views/shown-fields.ts'
import { projectDetailStatement } from '../views/statements.ts'
import type { CampaignRows } from './campaign-rows.ts'

export interface CampaignReader {
  /** `owner`: the API key that asks. */
  projects(parameters: ListParameters, owner: string): Promise<CacheEntry>
  /** Rejects with `NotFoundError` if no public campaign has this slug. */
  projectDetail(slug: string): Promise<CacheEntry>
}

export interface CampaignReaderDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  lists: CampaignLists
  rows: Pick<CampaignRows, 'read'>
  /** Which campaign has a slug, as far as that is known. */
  slugs: Pick<ListFollower, 'idOfSlug'>
  options: Pick<QueryAppOptions, 'detailCacheMs' | 'statementMsMax'>
  /** Unix milliseconds. */
  now: () => number
}

/** There is no such public resource. */
export class NotFoundError extends Error {
  override name = 'NotFoundError'
}

/** Creates a reader. Each call computes a new response. */
export function createCampaignReader(dependencies: CampaignReaderDependencies): CampaignReader {
  const { tables, databases, lists, rows, slugs, options, now } = dependencies

  /**
   * The campaign of a slug. One of them that is known to have it is read by its id, and taken only if its row has the slug
   * now. In any other case the slug is searched for.
   */
  async function detailRow(slug: string): Promise<ProjectDetailRow | undefined> {
    const read = async (statement: Statement) => {
      const [row] = await tables.rows<CampaignBySlugRow>(statement)
      return row && projectDetailRowOf(row)
    }
    const id = slugs.idOfSlug(slug)
    const known =
      id === undefined ? undefined : await read(detailByIdStatement(id, databases, options.statementMsMax))
    return known?.slug === slug
      ? known
      : read(projectDetailStatement(slug, databases, options.statementMsMax))
  }

  return {
    async projects(parameters, owner) {
      const { limit, offset } = parameters
      const page = await lists.page(parameters, { limit, offset }, owner)
      const { ids, total, asOf, snapshotId, createdAt, expiresAt } = page
      // If a campaign is no longer public, its page leaves it out; the total of the snapshot stays.
      const found = await rows.read(ids, asOf)
      const hasMore = offset + limit < total
      const body = projectListBodySchema.parse({
        data: found.map(row => presentProject(row, createdAt)),
        pagination: { total, limit, offset, has_more: hasMore },
      })
      const link = hasMore ? nextLink(parameters) : null
      return entryOf(body, { asOf, snapshotId, link, createdAt, expiresAt })
    },

    async projectDetail(slug) {
      const createdAt = now()
      const row = await detailRow(slug)
      if (row === undefined) throw new NotFoundError('no public campaign has this slug')
      const body = projectDetailBodySchema.parse({
        data: presentProjectDetail(row, createdAt),
      })
      return entryOf(body, {
        asOf: null,
        snapshotId: null,
        link: null,
        createdAt,
        expiresAt: createdAt + options.detailCacheMs,
      })
    },
  }
}

function nextLink(parameters: ListParameters): string {
  const next = formatListQuery({ ...parameters, offset: parameters.offset + parameters.limit })
  return `<${basePath}/projects?${next}>; rel="next"`
}
