/** `GET /projects/{slug}`: one public campaign, with its texts and reward tiers. */
import { z } from 'zod'
import { projectExample } from '../../../contracts/api/examples.ts'
import {
  type Project,
  type ProjectDetail,
  projectDetailSchema,
  type Reward,
  shownAs,
} from '../../../contracts/api/schemas.ts'
import { withCampaignFields } from '../../../contracts/tables/campaign-sql.ts'
import { fewRows, timeBound } from '../../tables/clickhouse/statements.ts'
import { type Databases, type Statement, type Tables, TablesError } from '../../tables/port.ts'
import {
  type CampaignBySlugRow,
  type ProjectDetailRow,
  presentProjectDetail,
  projectDetailRowOf,
} from '../campaigns/campaign-fields.ts'
import { type Endpoint, type EndpointParts, NotFoundError } from './endpoint.ts'

const slugPath = z.object({
  slug: z.string().meta({ description: "The campaign's slug.", example: projectExample.slug }),
})

export const projectDetailBodySchema = z
  .object({ data: projectDetailSchema })
  .meta({ id: 'ProjectDetailBody', description: 'One campaign.' })

const rewardExample: Reward = {
  reward_id: 'print',
  title: 'The atlas, signed',
  description: 'A bound copy with a drawing of your choice on the first page.',
  amount: 45,
  quantity_available: 200,
  quantity_claimed: 163,
  quantity_remaining: 37,
}

const detailExample: ProjectDetail = {
  ...projectExample,
  ...(shownAs('detail', ({ example }) => example) as Omit<ProjectDetail, keyof Project | 'rewards'>),
  rewards: [rewardExample],
}

export const project: Endpoint = {
  path: '/projects/{slug}',
  operationId: 'getProject',
  tag: 'Projects',
  summary: 'Show one public campaign',
  parameters: { path: slugPath },
  answer: 'The campaign.',
  schema: projectDetailBodySchema,
  example: { data: detailExample },
  failures: ['malformed_request', 'not_found'],
  cacheMs: ({ PLEDGEVIEW_CACHE_MS: ms }) => ms,

  read: (_, { slug = '' }) => ({
    key: `project ${slug}`,
    parameters: { slug },
    async load(parts, _, now) {
      const row = await detailRow(parts, slug)
      if (row === undefined) throw new NotFoundError('no public campaign has this slug')
      return { body: { data: presentProjectDetail(row, now) } }
    },
  }),
}

/**
 * The campaign of a slug. One of them that is known to have it is read by its id, and taken only if its row has the slug
 * now. In any other case the slug is searched for.
 */
async function detailRow(
  { tables, databases, slugs, options: { PLEDGEVIEW_QUERY_MS_MAX: msMax } }: EndpointParts,
  slug: string,
): Promise<ProjectDetailRow | undefined> {
  const read = async (statement: Statement) => {
    const [row] = await tables.rows<CampaignBySlugRow>(statement)
    return row && projectDetailRowOf(row)
  }
  const id = slugs.idOfSlug(slug)
  const known = id === undefined ? undefined : await read(detailByIdStatement(id, databases, msMax))
  return known?.slug === slug ? known : read(projectDetailStatement(slug, databases, msMax))
}

const detailColumns = withCampaignFields('list_fields, ${detail_columns}, reward_fields')

// The ids come from the slug index, which is used without FINAL. With FINAL, ClickHouse would look at the whole index again.
const readIdsBySlugIndex = 'use_skip_indexes_if_final = 0'

/** One public campaign with its texts and reward tiers, by slug: no row, or one of type `CampaignBySlugRow`. */
export function projectDetailStatement(slug: string, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT ${detailColumns}
FROM ${databases.read}.campaign_by_slug(slug = {slug:String})
SETTINGS ${fewRows}, ${readIdsBySlugIndex}, ${timeBound(msMax)}`,
    query_params: { slug },
  }
}

/**
 * One public campaign with its texts and reward tiers, by id: no row, or one of type `CampaignBySlugRow`. It costs half as
 * much as by slug (`projectDetailStatement`), which has to find the id first.
 */
export function detailByIdStatement(id: string, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT ${detailColumns}
FROM ${databases.read}.campaign_pages
WHERE campaign_id = {id:String}
SETTINGS ${fewRows}, ${timeBound(msMax)}`,
    query_params: { id },
  }
}

/**
 * Throws if the tables lack a column that details read. Otherwise the process would be ready, and fail each campaign. A field of lists that
 * they lack has its default.
 */
export async function checkDetails(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  msMax: number,
): Promise<void> {
  await tables.rows(detailByIdStatement('', databases, msMax)).catch(cause => {
    if (!(cause instanceof TablesError && cause.type === 'UNKNOWN_IDENTIFIER')) throw cause
    throw new Error(`the tables in ${databases.base} are not up to date: run pledgeview migrate first`, {
      cause,
    })
  })
}
