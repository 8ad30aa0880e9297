/** What the endpoints with pages share: their parameters, and the place of a page in the answer. */
import { z } from 'zod'
import { basePath } from '../../../contracts/api/conventions.ts'
import {
  formatListQuery,
  type ListParameters,
  limitDefault,
  limitMax,
  rules,
} from '../../../contracts/api/parameters.ts'
import { withoutSlash } from '../../../contracts/api/published-openapi.ts'
import { count } from '../../../contracts/api/schemas.ts'
import type { Config } from '../../runtime/config.ts'

/** The parameters `limit` and `offset`. `what`: what a page has, in the plural. */
export function pageParameters(what: string) {
  return {
    limit: z
      .int()
      .min(1)
      .max(limitMax)
      .default(limitDefault)
      .meta({ description: `The number of ${what} per page; ${rules.limit}.` }),
    offset: z
      .int()
      .min(0)
      .default(0)
      .meta({ description: `The number of ${what} before this page; ${rules.offset}.` }),
  }
}

/** A parameter that is a moment. */
export function momentParameter(description: string) {
  return z.string().optional().meta({
    format: 'date-time',
    // The years that the rule allows. Every date-time in these years is accepted.
    pattern: '^(19|2[0-2])\\d\\d-',
    description,
    example: '2026-03-19T10:15:25.123Z',
  })
}

export const paginationSchema = z
  .object({
    total: count.meta({ description: 'The number of campaigns that match the query, on all pages.' }),
    limit: count.meta({ description: 'The largest number of campaigns on this page, as requested.' }),
    offset: count.meta({ description: 'The number of campaigns before this page, as requested.' }),
    has_more: z.boolean().meta({ description: 'Whether there is another page after this one.' }),
  })
  .meta({ id: 'Pagination', description: 'The place of this page in the whole list.' })

export type Pagination = z.infer<typeof paginationSchema>

/**
 * The place of a page in its list of `total`, and the header `Link` if there is a next one: its path on the host at which consumers
 * reach the API. `since`: the name of `updatedSince`.
 */
export function placeOf(
  parameters: ListParameters,
  total: number,
  path: string,
  { PLEDGEVIEW_API_URL: apiUrl }: Config,
  since?: 'since',
) {
  const { limit, offset } = parameters
  const next = offset + limit
  const pagination = { total, limit, offset, has_more: next < total }
  if (!pagination.has_more) return { pagination, link: null }
  const base = apiUrl === undefined ? basePath : withoutSlash(new URL(apiUrl).pathname)
  const query = formatListQuery({ ...parameters, offset: next }, since)
  return { pagination, link: `<${base}${path}?${query}>; rel="next"` }
}
