/** The parts of the OpenAPI document that its operations share: headers, error responses, and authentication. */
import type { ZodOpenApiHeadersObject, ZodOpenApiResponseObject } from 'zod-openapi'
import { basePath, exposedHeaders, methods, requestHeaders } from '../../../contracts/api/conventions.ts'
import { type ErrorCode, errorBody, errorCodes, errors } from '../../../contracts/api/errors.ts'
import { invalidParameterExample } from '../../../contracts/api/examples.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'

/** The two ways to send credentials. */
export const securitySchemes = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'The key. Send it together with X-API-Secret.',
  },
  apiSecret: { type: 'apiKey', in: 'header', name: 'X-API-Secret', description: 'The secret of the key.' },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Key and secret in one header: `Authorization: Bearer <key>:<secret>`. Use it instead of the two headers. If a request has both, they must be equal.',
  },
} as const

const text = (description: string, example: string) => ({
  description,
  schema: { type: 'string' as const, example },
})
const whole = (description: string, example: number) => ({
  description,
  schema: { type: 'integer' as const, format: 'int64', example },
})

/** Every response header of the API. */
export const headers = {
  'X-Request-Id': text(
    'The id of this request. Quote it in a support request.',
    '4f6f3d51-6d0e-4c9b-9d3c-6f1a0c1f2a77',
  ),
  'X-RateLimit-Limit': whole('How many requests are allowed within any 60 seconds.', 120),
  'X-RateLimit-Remaining': whole('How many more requests are allowed now.', 119),
  'X-RateLimit-Reset': whole(
    'The Unix second at which a request is allowed. It is the present second if some requests remain.',
    1773914130,
  ),
  'RateLimit-Policy': text('The same limit, in the form of the IETF draft.', '"default";q=120;w=60'),
  RateLimit: text('The same counters, in the form of the IETF draft.', '"default";r=119;t=0'),
  'Access-Control-Allow-Origin': text('Any origin may read the responses.', '*'),
  'Access-Control-Expose-Headers': text('The headers that a browser lets a page read.', exposedHeaders),
  'Access-Control-Allow-Methods': text('The methods that a browser may use.', methods),
  'Access-Control-Allow-Headers': text('The headers that a browser may send.', requestHeaders),
  ETag: text('A weak tag of the body, for If-None-Match.', 'W/"GxGnFPRtVjWwkT4VJ8h2ew"'),
  Age: whole('Seconds since the response was computed, rounded up.', 12),
  'Cache-Control': text(
    'For how many seconds after it was computed the same response is sent. `Age` of these seconds have passed.',
    'private, max-age=60',
  ),
  'X-Data-As-Of': text(
    'The watermark: the list contains every change up to this moment. A mirror sends it as its next `updated_since`.',
    '2026-03-19T10:15:25.123Z',
  ),
  'X-Snapshot-Id': text(
    'The snapshot of the list that this page comes from. If two pages of a walk have different ids, campaigns may have ' +
      'moved from one page to another between them.',
    '0c9f7a52-3b1e-4c55-8d0a-2f6f5a1f7c1b',
  ),
  'X-Data-Digest': text(
    'On the first page of a list without `status` and `category`: how many campaigns are public, and a hash of their ids and ' +
      '`updated_at`, at the moment of the snapshot. A copy with the same digest is equal. The hash has 16 hexadecimal digits: it is ' +
      'the sum modulo 2^64 of a number for each campaign, the first eight bytes (big-endian) of the SHA-256 of its `id`, `|` and ' +
      '`updated_at`. It may be missing if the request has `updated_since`.',
    '391-9b64a3d7e21c05f8',
  ),
  'Accept-Ranges': text('The file can be read in parts.', 'bytes'),
  'Content-Range': text('Which bytes the part has, and how many the file has.', 'bytes 0-1023/482113'),
  Link: text(
    'The next page (`next`), if there is one. Of a deprecated version also what to read (`deprecation`, `sunset`) and the ' +
      'version to change to (`successor-version`).',
    `<${basePath}/projects?offset=50>; rel="next"`,
  ),
  Deprecation: text(
    'Only if this version of the API is deprecated: since when, as `@` and Unix seconds (RFC 9745).',
    '@1893456000',
  ),
  Sunset: text(
    'Only if it is decided: when this version of the API may stop answering (RFC 8594).',
    'Tue, 01 Jan 2030 00:00:00 GMT',
  ),
  'Retry-After': whole('Seconds to wait.', 7),
  Allow: text('The methods that the path supports.', methods),
} as const

export type HeaderName = keyof typeof headers

/** The headers of responses of every status; then of cached responses. */
export const everyResponse = [
  'X-Request-Id',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
  'Access-Control-Allow-Origin',
  'Access-Control-Expose-Headers',
  'Deprecation',
  'Sunset',
  'Link',
] as const satisfies HeaderName[]
export const cachedResponse = [...everyResponse, 'ETag', 'Age', 'Cache-Control'] as const

/** References to the shared headers with these names. */
export function refer(names: readonly HeaderName[]): ZodOpenApiHeadersObject {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}

/** The response of each error code. In the document its name is the code. */
export const failureResponses = Object.fromEntries(errorCodes.map(code => [code, failure(code)])) as Readonly<
  Record<ErrorCode, ZodOpenApiResponseObject>
>

function failure(code: ErrorCode): ZodOpenApiResponseObject {
  const { status, message } = errors[code]
  return {
    id: code,
    description: `${status} \`${code}\`: ${message}`,
    headers: refer(failureHeaders(code)),
    content: {
      'application/json': {
        schema: errorBodySchema,
        example: code === 'invalid_parameter' ? invalidParameterExample : errorBody(code),
      },
    },
  }
}

function failureHeaders(code: ErrorCode): HeaderName[] {
  if (code === 'rate_limited' || code === 'internal_error') return [...everyResponse, 'Retry-After']
  return code === 'method_not_allowed' ? [...everyResponse, 'Allow'] : [...everyResponse]
}
