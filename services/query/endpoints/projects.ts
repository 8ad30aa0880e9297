/** `GET /projects`: a page of the public campaigns. */
import { z } from 'zod'
import { basePath } from '../../../contracts/api/conventions.ts'
import { projectExample } from '../../../contracts/api/examples.ts'
import {
  formatListQuery,
  type ListParameters,
  limitDefault,
  limitMax,
  parseListQuery,
  rules,
  sorts,
} from '../../../contracts/api/parameters.ts'
import { count, projectSchema } from '../../../contracts/api/schemas.ts'
import { publicStatuses } from '../../../contracts/events/event.ts'
import { atTime } from '../campaigns/campaign-fields.ts'
import { listKey } from '../lists/campaign-lists.ts'
import type { Endpoint } from './endpoint.ts'

const queryParameters = z.object({
  limit: z
    .int()
    .min(1)
    .max(limitMax)
    .default(limitDefault)
    .meta({ description: `The number of campaigns per page; ${rules.limit}.` }),
  offset: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: `The number of campaigns before this page; ${rules.offset}.` }),
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
  updated_since: z
    .string()
    .optional()
    .meta({
      format: 'date-time',
      // The years that the rule allows. Every date-time in these years is accepted.
      pattern: '^(19|2[0-2])\\d\\d-',
      description: `Only campaigns that changed at or after this moment; ${rules.updated_since}.`,
      example: '2026-03-19T10:15:25.123Z',
    }),
})

export const paginationSchema = z
  .object({
    total: count.meta({ description: 'The number of campaigns that match the query, on all pages.' }),
    limit: count.meta({ description: 'The largest number of campaigns on this page, as requested.' }),
    offset: count.meta({ description: 'The number of campaigns before this page, as requested.' }),
    has_more: z.boolean().meta({ description: 'Whether there is another page after this one.' }),
  })
  .meta({ id: 'Pagination', description: 'The place of this page in the whole list.' })

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
  schema: projectListBodySchema,
  example,
  failures: ['invalid_parameter'],
  cacheMs: ({ PLEDGEVIEW_CACHE_MS: ms }) => ms,

  open:
    ({ lists, rows }) =>
    query => {
      const parsed = parseListQuery(query)
      if ('fault' in parsed) return parsed
      const { parameters } = parsed
      const { limit, offset } = parameters
      return {
        key: `projects ${limit} ${offset} ${listKey(parameters)}`,
        parameters,
        async load(owner) {
          const { ids, total, ...page } = await lists.page(parameters, { limit, offset }, owner)
          // If a campaign is no longer public, its page leaves it out; the total of the snapshot stays.
          const found = await rows.read(ids, page.asOf)
          const hasMore = offset + limit < total
          return {
            body: {
              data: found.map(project => atTime(project, page.createdAt)),
              pagination: { total, limit, offset, has_more: hasMore },
            },
            ...page,
            link: hasMore ? nextLink(parameters) : null,
          }
        },
      }
    },
}

function nextLink(parameters: ListParameters): string {
  const next = formatListQuery({ ...parameters, offset: parameters.offset + parameters.limit })
  return `<${basePath}/projects?${next}>; rel="next"`
}
