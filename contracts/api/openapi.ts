/** The OpenAPI 3.1 document of the API, built from the schemas, the error registry and the parameters' rules. Pure. */
import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'
import { publicStatuses } from '../events/event.ts'
import { apiTitle, basePath } from './conventions.ts'
import { type ErrorCode, errors } from './errors.ts'
import {
  detailBodyExample,
  listBodyExample,
  projectExample,
  serviceBodyExample,
  statsBodyExample,
} from './examples.ts'
import {
  cachedResponse,
  everyResponse,
  failureResponses,
  type HeaderName,
  headers,
  listResponse,
  refer,
  securitySchemes,
} from './openapi-components.ts'
import { limitDefault, limitMax, rules, sorts } from './parameters.ts'
import {
  projectDetailBodySchema,
  projectListBodySchema,
  serviceBodySchema,
  statsBodySchema,
} from './schemas.ts'
import { type ApiVersion, versions } from './versions.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

/**
 * Builds the document. `version` is the version of the program; the version of the API is part of the path. An
 * installation publishes it with its own addresses: see published-openapi.ts.
 */
export function buildOpenApi({
  version,
  apiVersions = versions,
}: {
  version: string
  apiVersions?: readonly ApiVersion[]
}): OpenApiDocument {
  const deprecation = apiVersions.find(known => known.basePath === basePath)?.deprecation ?? null
  const get = (operation: ZodOpenApiOperationObject): ZodOpenApiOperationObject =>
    deprecation === null ? operation : { ...operation, deprecated: true }
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: apiTitle,
        version,
        description: introduction,
        contact: { name: 'The developer portal', url: documentationExample },
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: basePath, description: 'The API.' }],
      externalDocs: { url: documentationExample, description: 'The guide, and how to get a key.' },
      security: [{ apiKey: [], apiSecret: [] }, { bearer: [] }],
      tags: [
        { name: 'Projects', description: 'Public campaigns.' },
        { name: 'Platform', description: 'The platform as a whole.' },
        { name: 'Service', description: 'The API itself.' },
        { name: 'CORS', description: 'Preflight requests of browsers.' },
      ],
      paths: {
        '/projects': { get: get(listProjects), options: preflight('preflightProjects') },
        '/projects/{slug}': { get: get(getProject), options: preflight('preflightProject', slugPath) },
        '/stats': { get: get(getStats), options: preflight('preflightStats') },
        '/': { get: get(getService), options: preflight('preflightService') },
      },
      components: {
        securitySchemes,
        headers,
        // No operation lists this response: it answers methods that have no operation.
        responses: { method_not_allowed: failureResponses.method_not_allowed },
      },
    },
    {
      // Fields may be added to any response. A document with closed objects would break generated clients.
      override: ({ jsonSchema }) => {
        delete jsonSchema.additionalProperties
      },
    },
  )
}

// A reserved name. An installation replaces it with the address of its portal.
const documentationExample = 'https://developers.crowdfunding.example/docs'

const introduction = `A read-only API of the public campaigns: everything that an anonymous visitor of the platform can see, as JSON.

To mirror the campaigns, read all pages of \`GET /projects\` and keep the \`X-Data-As-Of\` of the first page. Send it as
\`updated_since\` when you read the pages again. The bound is inclusive, so you may receive a campaign twice, but you miss
no change. Responses are cached for one minute (statistics: five minutes). Within that time all pages of one query come
from the same snapshot of the list. If \`X-Snapshot-Id\` changes between two pages, the second page comes from another
snapshot, and campaigns may have moved to other pages. Two snapshots may have the same \`X-Data-As-Of\`.

A mirror must compute \`days_remaining\` itself from \`end_date\`: it decreases with time, and that is not a change. To
order two copies of a campaign, compare \`updated_at\`; but never send it as \`updated_since\`.

Unknown query parameters are ignored. Send credentials in headers, never in the URL. New fields may be added at any time,
so clients must ignore fields that they do not know.`

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

const slugPath = z.object({
  slug: z.string().meta({ description: "The campaign's slug.", example: projectExample.slug }),
})

const ifNoneMatch = z.object({
  'If-None-Match': z.string().optional().meta({
    description: 'The ETags that the client has. The response is 304 if one of them is still valid.',
  }),
})

const listProjects: ZodOpenApiOperationObject = {
  operationId: 'listProjects',
  tags: ['Projects'],
  summary: 'List public campaigns',
  requestParams: { query: queryParameters, header: ifNoneMatch },
  responses: {
    ...ok('A page of campaigns.', projectListBodySchema, listBodyExample, listResponse),
    ...failures('invalid_parameter', 'unauthorized', 'forbidden'),
  },
}

const getProject: ZodOpenApiOperationObject = {
  operationId: 'getProject',
  tags: ['Projects'],
  summary: 'Show one public campaign',
  requestParams: {
    path: slugPath,
    header: ifNoneMatch,
  },
  responses: {
    ...ok('The campaign.', projectDetailBodySchema, detailBodyExample, cachedResponse),
    ...failures('malformed_request', 'unauthorized', 'forbidden', 'not_found'),
  },
}

const getStats: ZodOpenApiOperationObject = {
  operationId: 'getStats',
  tags: ['Platform'],
  summary: 'Show the statistics of the platform',
  requestParams: { header: ifNoneMatch },
  responses: {
    ...ok('The statistics.', statsBodySchema, statsBodyExample, cachedResponse),
    ...failures('unauthorized', 'forbidden'),
  },
}

const getService: ZodOpenApiOperationObject = {
  operationId: 'getService',
  tags: ['Service'],
  summary: 'Show where to go',
  description: 'Needs no key.',
  security: [],
  requestParams: { header: ifNoneMatch },
  responses: {
    ...ok('Where to go from here.', serviceBodySchema, serviceBodyExample, cachedResponse),
    ...failures('malformed_request'),
  },
}

function preflight(operationId: string, path?: z.ZodObject): ZodOpenApiOperationObject {
  return {
    operationId,
    tags: ['CORS'],
    summary: 'Answer a CORS preflight',
    security: [],
    ...(path && { requestParams: { path } }),
    responses: {
      204: {
        description:
          'The methods and headers that a browser may send. It counts against a limit of its address that only preflights have.',
        headers: refer([...everyResponse, 'Access-Control-Allow-Methods', 'Access-Control-Allow-Headers']),
      },
      429: failureResponses.rate_limited,
    },
  }
}

function ok(
  description: string,
  schema: z.ZodType,
  example: unknown,
  names: readonly HeaderName[],
): ZodOpenApiResponsesObject {
  return {
    200: { description, headers: refer(names), content: { 'application/json': { schema, example } } },
    304: { description: 'The body that the client has is still valid.', headers: refer(names) },
  }
}

// A request that times out or is too large may be meant for any operation, so every operation lists 408 and 431.
function failures(...codes: ErrorCode[]): ZodOpenApiResponsesObject {
  const all: ErrorCode[] = [
    ...codes,
    'rate_limited',
    'internal_error',
    'request_timeout',
    'headers_too_large',
  ]
  return Object.fromEntries(all.map(code => [String(errors[code].status), failureResponses[code]]))
}
