/** The OpenAPI 3.1 document of the API, built from its endpoints and the error registry. Pure. */
import { z } from 'zod'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathItemObject } from 'zod-openapi'
import { apiTitle, basePath } from '../../../contracts/api/conventions.ts'
import { type ErrorCode, errors, rangeBody } from '../../../contracts/api/errors.ts'
import { mirroringSteps } from '../../../contracts/api/mirroring.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import { type ApiVersion, versions } from '../../../contracts/api/versions.ts'
import { operations } from '../endpoints/all.ts'
import type { Operation } from '../endpoints/endpoint.ts'
import { downloads } from '../endpoints/exports.ts'
import {
  cachedResponse,
  everyResponse,
  failureResponses,
  headers,
  refer,
  securitySchemes,
} from './components.ts'

/**
 * Builds the document. `version` is the version of the program; the version of the API is part of the path. An
 * installation publishes it with its own addresses: see published-openapi.ts.
 */
export function buildOpenApi(version: string, apiVersions: readonly ApiVersion[] = versions) {
  const deprecation = apiVersions.find(known => known.basePath === basePath)?.deprecation ?? null
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
      // The bearer token is first: tools such as Postman use only the first scheme, and would send a key without its secret.
      security: [{ bearer: [] }, { apiKey: [], apiSecret: [] }],
      tags: [
        { name: 'Projects', description: 'Public campaigns.' },
        { name: 'Exports', description: 'Whole copies of the public campaigns.' },
        { name: 'Platform', description: 'The platform as a whole.' },
        { name: 'Service', description: 'The API itself.' },
        { name: 'CORS', description: 'Preflight requests of browsers.' },
      ],
      paths: Object.fromEntries([
        ...operations.map(operation => [operation.path, pathItem(operation, deprecation !== null)] as const),
        ...downloads.map(file => [file.path, downloadItem(file, deprecation !== null)] as const),
      ]),
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

To mirror the campaigns:

${mirroringSteps.map((step, index) => `${index + 1}. ${step}`).join('\n')}

\`updated_since\` is inclusive, so you may receive a campaign twice, but you miss no change. Responses are cached for one minute
(statistics: five minutes). Within that time all pages of one query come from the same snapshot of the list. Two snapshots may have the
same \`X-Data-As-Of\`.

A mirror must compute \`days_remaining\` itself from \`end_date\`: it decreases with time, and that is not a change. To
order two copies of a campaign, compare \`updated_at\`; but never send it as \`updated_since\`.

Unknown query parameters are ignored. Send credentials in headers, never in the URL. New fields may be added at any time,
so clients must ignore fields that they do not know.`

const ifNoneMatch = z.object({
  'If-None-Match': z.string().optional().meta({
    description: 'The ETags that the client has. The response is 304 if one of them is still valid.',
  }),
})

function pathItem(operation: Operation, isDeprecated: boolean): ZodOpenApiPathItemObject {
  const { path } = operation.parameters
  return {
    get: { ...get(operation), ...(isDeprecated && { deprecated: true }) },
    options: { ...preflight(operation), ...(path && { requestParams: { path } }) },
  }
}

function preflight({ operationId }: Pick<Operation, 'operationId'>): ZodOpenApiOperationObject {
  return {
    operationId: operationId.replace(/^[a-z]+/, 'preflight'),
    tags: ['CORS'],
    summary: 'Answer a CORS preflight',
    security: [],
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

const rangeHeaders = ifNoneMatch.extend({
  Range: z.string().optional().meta({
    description: 'A part of the file, as `bytes=0-1023`. Several ranges are answered with the whole file.',
  }),
  'If-Range': z.string().optional().meta({
    description:
      'The ETag of the file that the other parts are of. If it is another file by now, the answer is the whole file.',
  }),
})

function downloadItem(file: (typeof downloads)[number], isDeprecated: boolean): ZodOpenApiPathItemObject {
  const { operationId, summary, answer, type } = file
  const names = refer([...everyResponse, 'ETag', 'Cache-Control', 'X-Data-As-Of', 'Accept-Ranges'])
  const content = { [type]: { schema: { type: 'string', format: 'binary' } } } as const
  return {
    get: {
      operationId,
      tags: ['Exports'],
      summary,
      description: '`HEAD` is answered, too.',
      ...(isDeprecated && { deprecated: true }),
      requestParams: { header: rangeHeaders },
      responses: {
        200: { description: answer, headers: names, content },
        206: { description: 'The part.', headers: { ...names, ...refer(['Content-Range']) }, content },
        304: { description: 'The file that the client has is still the latest.', headers: names },
        416: {
          description: `416 \`malformed_request\`: ${rangeBody.error.message}`,
          headers: refer([...everyResponse, 'Content-Range']),
          content: { 'application/json': { schema: errorBodySchema, example: rangeBody } },
        },
        ...failures(['not_found', 'unauthorized', 'forbidden', ...always]),
      },
    },
    options: preflight(file),
  }
}

const always = [
  'rate_limited',
  'internal_error',
  // A request that times out or is too large may be meant for any operation.
  'request_timeout',
  'headers_too_large',
] as const satisfies ErrorCode[]

const failures = (codes: readonly ErrorCode[]) =>
  Object.fromEntries(codes.map(code => [String(errors[code].status), failureResponses[code]]))

function get(operation: Operation): ZodOpenApiOperationObject {
  const { operationId, tag, summary, isPublic, parameters, answer, isPage, hasDigest, schema, example } =
    operation
  const ofPage = isPage ? (['X-Data-As-Of', 'X-Snapshot-Id'] as const) : []
  const names = refer([...cachedResponse, ...ofPage, ...(hasDigest ? (['X-Data-Digest'] as const) : [])])
  const all: ErrorCode[] = [
    ...operation.failures,
    ...(isPublic ? [] : (['unauthorized', 'forbidden'] as const)),
    ...always,
  ]
  return {
    operationId,
    tags: [tag],
    summary,
    ...(isPublic && { description: 'Needs no key.', security: [] }),
    requestParams: { ...parameters, header: ifNoneMatch },
    responses: {
      200: { description: answer, headers: names, content: { 'application/json': { schema, example } } },
      304: { description: 'The body that the client has is still valid.', headers: names },
      ...failures(all),
    },
  }
}
