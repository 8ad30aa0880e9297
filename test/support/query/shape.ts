/** What every response of the API must have, with any status, and which fields a body may have. */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { errors } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'

const document = JSON.parse(
  readFileSync(new URL('../../../contracts/api/openapi.json', import.meta.url), 'utf8'),
)

// In words of its own: what the clients read, in a browser too, and what the contract tells about.
const exposed =
  'accept-ranges age content-range deprecation etag link ratelimit ratelimit-policy retry-after sunset x-data-as-of x-data-digest ' +
  'x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset x-request-id x-snapshot-id'

export interface AnyResponse {
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
}

export async function readResponse(response: Response): Promise<AnyResponse> {
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  }
}

/** Fails unless the response has the headers of every response and, if it is an error, exactly the error shape. */
export function expectEveryPromise(response: AnyResponse, { bodiless = false } = {}): void {
  const { status, headers, body } = response
  expect(headers['x-request-id']).toMatch(/^[\w-]{8,}$/)
  expect(headers['access-control-allow-origin']).toBe('*')
  expect(namesIn(headers['access-control-expose-headers'])).toBe(exposed)
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
    expect(headers[name], name).toMatch(/^\d+$/)
  }
  expect(headers['ratelimit-policy']).toMatch(/^"default";q=\d+;w=60$/)
  expect(headers.ratelimit).toMatch(/^"default";r=\d+;t=\d+$/)
  if (status === 429 || status === 500) expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  if (status === 204 || status === 304) {
    expect(body).toBe('')
    return
  }
  expect(headers['content-type']).toBe('application/json; charset=utf-8')
  if (bodiless) return
  if (status >= 400) {
    const parsed = JSON.parse(body)
    expect(errorBodySchema.parse(parsed)).toEqual(parsed)
    expect(errors[parsed.error.code as keyof typeof errors].status).toBe(status)
  } else {
    const parsed = JSON.parse(body)
    if (parsed.openapi === undefined) expect(fieldsOutside(parsed)).toEqual([])
    else expect(parsed.paths).toEqual(document.paths)
  }
}

/** The names of a list of headers, in order. */
export function namesIn(list = ''): string {
  return list.toLowerCase().split(', ').toSorted().join(' ')
}

/** The error code of a body. */
export function codeIn({ body }: AnyResponse): string {
  return JSON.parse(body).error.code
}

// The path of every field of the contract, which is checked in: a new one shows in its diff.
const allowed = new Set(Object.values(document.components.schemas).flatMap(schema => pathsIn(schema)))

function pathsIn(schema: unknown, path = ''): string[] {
  const {
    $ref,
    items,
    anyOf = [],
    properties = {},
  } = schema as {
    $ref?: string
    items?: object
    anyOf?: object[]
    properties?: Record<string, object>
  }
  const named = $ref && document.components.schemas[$ref.replace('#/components/schemas/', '')]
  return [
    ...[named, items, ...anyOf].flatMap(part => (part ? pathsIn(part, path) : [])),
    ...Object.entries(properties).flatMap(([name, part]) => {
      const at = path === '' ? name : `${path}.${name}`
      return [at, ...pathsIn(part, at)]
    }),
  ]
}

/** The paths of fields that are not on the allowlist. */
export function fieldsOutside(body: unknown, path = ''): string[] {
  if (Array.isArray(body)) return body.flatMap(item => fieldsOutside(item, path))
  if (body === null || typeof body !== 'object') return []
  return Object.entries(body).flatMap(([name, value]) => {
    const at = path === '' ? name : `${path}.${name}`
    return allowed.has(at) ? fieldsOutside(value, at) : [at]
  })
}
