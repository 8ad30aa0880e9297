/** `GET /projects`: a page of the public campaigns. */
import { z } from 'zod'
import { projectExample } from '../../../contracts/api/examples.ts'
import { parseListQuery, rules, sorts } from '../../../contracts/api/parameters.ts'
import { projectSchema } from '../../../contracts/api/schemas.ts'
import { publicStatuses } from '../../../contracts/events/event.ts'
import { listKey } from '../lists/campaign-lists.ts'
import type { Endpoint } from './endpoint.ts'
import { momentParameter, pageParameters, paginationSchema, placeOf } from './page.ts'

const queryParameters = z.object({
  ...pageParameters('campaigns'),
  status: z.enum(publicStatuses).optional().meta({ description: 'Only campaigns with this status.' }),
  category: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Only campaigns with exactly this category.', example: projectExample.category }),
  sort: z
    .enum(sorts)
    .default('newest')
    .meta({
      description:
        'newest: by launch date, latest first. ending_soon: running campaigns by end date, soonest first, then ended ' +
        'ones, latest first. most_funded: by pledged amount in the platform currency, highest first. most_backed: by ' +
        'number of backers, highest first. Ties are sorted by id.',
    }),
  updated_since: momentParameter(
    `Only campaigns that changed at or after this moment; ${rules.updated_since}.`,
  ),
})

export const projectListBodySchema = z
  .object({
    data: z.array(projectSchema).meta({ description: 'The campaigns of this page.' }),
    pagination: paginationSchema,
  })
  .meta({ id: 'ProjectListBody', description: 'A page of campaigns.' })

export type ProjectListBody = z.infer<typeof projectListBodySchema>

const example: ProjectListBody = {
  data: [projectExample],
  pagination: { total: 391, limit: 1, offset: 0, has_more: true },
}

export const projects: Endpoint = {
  path: '/projects',
  operationId: 'listProjects',
  tag: 'Projects',
  summary: 'List public campaigns',
  parameters: { query: queryParameters },
  answer: 'A page of campaigns.',
  isPage: true,
  hasDigest: true,
  schema: projectListBodySchema,
  example,
  failures: ['invalid_parameter'],
  cacheMs: ({ PLEDGEVIEW_CACHE_MS: ms }) => ms,

  read(query) {
    const parsed = parseListQuery(query)
    if ('fault' in parsed) return parsed
    const { parameters } = parsed
    const { limit, offset } = parameters
    return {
      key: `projects ${limit} ${offset} ${listKey(parameters)}`,
      parameters,
      async load({ lists, rows, options }, owner) {
        const { ids, total, digest, ...page } = await lists.page(parameters, owner)
        // If a campaign is no longer public, its page leaves it out; the total of the snapshot stays.
        const written = await rows.read(ids, page.asOf)
        const { pagination, link } = placeOf(parameters, total, '/projects', options)
        return { body: { written, pagination }, ...page, digest: offset === 0 ? digest : undefined, link }
      },
    }
  },
}
