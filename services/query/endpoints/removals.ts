/** `GET /removals`: which campaigns were public and no longer are. Only their ids, and when they left. */
import { z } from 'zod'
import { projectExample } from '../../../contracts/api/examples.ts'
import { parseRemovalsQuery, rules } from '../../../contracts/api/parameters.ts'
import { timestamp, timestampForm } from '../../../contracts/api/schemas.ts'
import { type Endpoint, NotFoundError } from './endpoint.ts'
import { momentParameter, pageParameters, paginationSchema, placeOf } from './page.ts'

const queryParameters = z.object({
  ...pageParameters('removals'),
  since: momentParameter(`Only campaigns that left at or after this moment; ${rules.since}.`),
})

const removalSchema = z
  .object({
    id: z
      .string()
      .meta({ description: 'The id that the campaign had in lists.', example: projectExample.id }),
    updated_at: timestamp.meta({
      description:
        'When the campaign left. It is later than every `updated_at` that it had before, and earlier than the one that it has ' +
        `if it comes back. ${timestampForm}`,
    }),
  })
  .meta({ id: 'Removal', description: 'A campaign that was public and no longer is.' })

export const removalListBodySchema = z
  .object({
    data: z.array(removalSchema).meta({ description: 'The removals of this page, the earliest first.' }),
    pagination: paginationSchema,
    kept_since: timestamp.meta({
      description:
        'From this moment on, no removal is missing. If your `since` is earlier, compare your copy with all pages of the list of ' +
        `projects once. ${timestampForm}`,
    }),
  })
  .meta({ id: 'RemovalListBody', description: 'A page of removals.' })

const example: z.infer<typeof removalListBodySchema> = {
  data: [{ id: projectExample.id, updated_at: '2026-03-19T10:15:25.123Z' }],
  pagination: { total: 1, limit: 50, offset: 0, has_more: false },
  kept_since: '2025-12-19T10:15:25.123Z',
}

export const removals: Endpoint = {
  path: '/removals',
  operationId: 'listRemovals',
  tag: 'Projects',
  summary: 'List campaigns that are no longer public',
  parameters: { query: queryParameters },
  answer: 'A page of removals.',
  isPage: true,
  schema: removalListBodySchema,
  example,
  // An operator may switch it off.
  failures: ['invalid_parameter', 'not_found'],
  cacheMs: ({ PLEDGEVIEW_CACHE_MS: ms }) => ms,

  read(query) {
    const parsed = parseRemovalsQuery(query)
    if ('fault' in parsed) return parsed
    const { parameters } = parsed
    const { limit, offset, updatedSince } = parameters
    return {
      key: `removals ${limit} ${offset} ${updatedSince ?? '*'}`,
      parameters: { limit, offset, since: updatedSince },
      async load({ lists, options }, owner) {
        if (options.PLEDGEVIEW_REMOVALS_DAYS === 0) throw new NotFoundError()
        const { ids, total, keptSince, ...page } = await lists.removals(parameters, owner)
        const { pagination, link } = placeOf(parameters, total, '/removals', options, 'since')
        return { body: { data: ids.map(removalOf), pagination, kept_since: keptSince }, ...page, link }
      },
    }
  },
}

function removalOf(entry: string): z.infer<typeof removalSchema> {
  const space = entry.indexOf(' ')
  return { id: entry.slice(space + 1), updated_at: new Date(Number(entry.slice(0, space))).toISOString() }
}
