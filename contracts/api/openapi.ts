/** The OpenAPI 3.1 document of the API, built from the schemas, the error registry and the parameters' rules. Pure. */
import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'
import { publicStatuses } from '../events/event.ts'
import { basePath } from './conventions.ts'
import { type ErrorCode, errors } from './errors.ts'
import { detailBodyExample, listBodyExample, projectExample, statsBodyExample } from './examples.ts'
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
import { projectDetailBodySchema, projectListBodySchema, statsBodySchema } from './schemas.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

/** Builds the document. `version` is the program's, of which the API's own version is the path. */
export function buildOpenApi({ version }: { version: string }): OpenApiDocument {
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Public campaign data',
        version,
        description: introduction,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: basePath }],
      security: [{ apiKey: [], apiSecret: [] }, { bearer: [] }],
      tags: [
        { name: 'Projects', description: 'Public campaigns.' },
        { name: 'Platform', description: 'The platform as a whole.' },
        { name: 'CORS', description: 'What browsers ask before they call.' },
      ],
      paths: {
        '/projects': { get: listProjects, options: preflight('preflightProjects') },
        '/projects/{slug}': { get: getProject, options: preflight('preflightProject', slugPath) },
        '/stats': { get: getStats, options: preflight('preflightStats') },
      },
      components: {
        securitySchemes,
        headers,
        // No operation lists it: it answers the methods that have no operation.
        responses: { method_not_allowed: failureResponses.method_not_allowed },
      },
    },
    {
      // Fields may be added to any response: a document that closed its objects would break the clients made from it.
      override: ({ jsonSchema }) => {
        delete jsonSchema.additionalProperties
      },
    },
  )
}

const introduction = `What an anonymous visitor of the platform can see of its campaigns, as JSON; read-only.

To mirror the campaigns, walk the pages of \`GET /projects\`, keep the \`X-Data-As-Of\` of the first page, and send it as
\`updated_since\` with the next walk. The bound is inclusive, so a campaign may be seen twice, but no change is missed.
Answers are cached for a minute (statistics: five); within that time all pages of one query show one state of the list.
When \`X-Data-As-Of\` changes between two pages, a newer state has begun: its rows may have moved by some places.

Unknown query parameters are ignored. Credentials belong in headers, never in the URL. Clients ignore fields they do
not know: some may be added at any time.`

const queryParameters = z.object({
  limit: z
    .int()
    .min(1)
    .max(limitMax)
    .default(limitDefault)
    .meta({ description: `Rows of a page; ${rules.limit}.` }),
  offset: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: `Rows before the page; ${rules.offset}.` }),
  status: z.enum(publicStatuses).optional().meta({ description: 'Only campaigns of this status.' }),
  category: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Only campaigns of exactly this category.', example: projectExample.category }),
  sort: z
    .enum(sorts)
    .default('newest')
    .meta({
      description:
        'newest: by launch, latest first. ending_soon: the running by end, soonest first, then the ended, latest first. ' +
        'most_funded: by the amount pledged in the platform currency. most_backed: by backers. Ties are broken by id.',
    }),
  updated_since: z
    .string()
    .optional()
    .meta({
      format: 'date-time',
      // The years that the rule names; of a date-time every one of them is understood.
      pattern: '^(19|2[0-2])\\d\\d-',
      description: `Only campaigns that changed at or after this moment; ${rules.updated_since}.`,
      example: '2026-03-19T10:15:25.123Z',
    }),
})

const slugPath = z.object({
  slug: z.string().meta({ description: "The campaign's slug.", example: projectExample.slug }),
})

const ifNoneMatch = z.object({
  'If-None-Match': z
    .string()
    .optional()
    .meta({ description: 'Tags of answers at hand; 304 when one still holds.' }),
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
  summary: 'Show the platform in numbers',
  requestParams: { header: ifNoneMatch },
  responses: {
    ...ok('The statistics.', statsBodySchema, statsBodyExample, cachedResponse),
    ...failures('unauthorized', 'forbidden'),
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
        description: 'What a browser may send here. Takes nothing of the limit.',
        headers: refer([...everyResponse, 'Access-Control-Allow-Methods', 'Access-Control-Allow-Headers']),
      },
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
    304: { description: 'An answer at hand still holds.', headers: refer(names) },
  }
}

// A request that does not arrive, or does not fit, may be meant for any operation, so each lists 408 and 431.
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
