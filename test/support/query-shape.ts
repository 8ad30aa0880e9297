/** What every response of the API must have, with any status, and which fields a body may have. */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { errors } from '../../contracts/api/errors.ts'
import { errorBodySchema } from '../../contracts/api/schemas.ts'

const document = JSON.parse(
  readFileSync(new URL('../../contracts/api/openapi.json', import.meta.url), 'utf8'),
)

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
  expect(headers['access-control-expose-headers']).toContain('X-RateLimit-Remaining')
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
    expect(headers[name], name).toMatch(/^\d+$/)
  }
  expect(headers['ratelimit-policy']).toMatch(/^"default";q=\d+;w=\d+$/)
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

/** The error code of a body. */
export function codeIn({ body }: AnyResponse): string {
  return JSON.parse(body).error.code
}

// The path of every allowlisted field, written by hand, because the schemas are under test.
const allowed = new Set(
  (
    'data data.id data.slug data.url data.title data.subtitle data.category data.subcategory data.location ' +
    'data.image_url data.currency data.goal_amount data.pledged_amount data.percent_funded data.backer_count ' +
    'data.follower_count data.status data.campaign_type data.project_type data.is_staff_pick ' +
    'data.has_adult_content data.uses_ai data.tags data.launch_date data.end_date data.days_remaining ' +
    'data.created_at data.updated_at data.creator data.creator.name data.creator.profile_url data.creator.avatar_url ' +
    'data.description data.risks data.rewards data.rewards.reward_id data.rewards.title data.rewards.description ' +
    'data.rewards.amount data.rewards.quantity_available data.rewards.quantity_claimed ' +
    'data.rewards.quantity_remaining data.total_raised data.total_pledges data.total_backers data.total_creators ' +
    'data.projects_total data.projects_live data.projects_funded data.success_rate data.average_pledge ' +
    'data.categories data.categories.category data.categories.project_count data.generated_at ' +
    'pagination pagination.total pagination.limit pagination.offset pagination.has_more ' +
    'data.documentation_url data.keys_url data.openapi_url data.versions data.versions.name data.versions.url ' +
    'data.versions.deprecated_at data.versions.sunset_at ' +
    'error error.code error.message'
  ).split(' '),
)

/** The paths of fields that are not on the allowlist. */
export function fieldsOutside(body: unknown, path = ''): string[] {
  if (Array.isArray(body)) return body.flatMap(item => fieldsOutside(item, path))
  if (body === null || typeof body !== 'object') return []
  return Object.entries(body).flatMap(([name, value]) => {
    const at = path === '' ? name : `${path}.${name}`
    return allowed.has(at) ? fieldsOutside(value, at) : [at]
  })
}
