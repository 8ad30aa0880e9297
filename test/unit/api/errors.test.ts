import { describe, expect, it } from 'vitest'
import { errorBody, errorCodes, errors, invalidParameterBody } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import { guideContent } from '../../../services/portal/guide/guide.ts'

const document = { info: { version: '' }, paths: {}, components: { schemas: {}, headers: {}, responses: {} } }

describe('the error registry', () => {
  it('gives the codes of the API the statuses that clients were promised', () => {
    const promised = {
      invalid_parameter: 400,
      unauthorized: 401,
      forbidden: 403,
      not_found: 404,
      rate_limited: 429,
      internal_error: 500,
    } as const
    for (const [code, status] of Object.entries(promised)) {
      expect(errors[code as keyof typeof promised].status).toBe(status)
    }
  })

  it.each(errorCodes)('has a body for %s that its schema accepts as it is', code => {
    expect(errorBodySchema.parse(errorBody(code))).toEqual(errorBody(code))
    expect(errorBody(code).error.message).toMatch(/^[A-Z].+(?:\.|\. See \/api\/v1)$/)
  })

  it('names the parameter in the message of invalid_parameter', () => {
    expect(invalidParameterBody('limit', 'must be small')).toEqual({
      error: { code: 'invalid_parameter', message: 'limit must be small.' },
    })
  })

  it.each(['unauthorized', 'not_found'] as const)('leads from %s to the documentation', code => {
    const { message } = errorBody(code, 'https://portal.example/docs').error
    expect(message).toMatch(/ See https:\/\/portal\.example\/docs#[\w-]+$/)
    const anchor = message.split('#')[1]
    expect(
      guideContent({ apiUrl: 'https://api.example/api/v1', hasPackage: false, document }).text,
    ).toContain(`id="${anchor}"`)
    expect(errorBody(code).error.message).toMatch(/ See \/api\/v1$/)
  })
})
