/** The examples that several resources share. The OpenAPI document shows them, and the tests parse them. */
import { invalidParameterBody } from './errors.ts'
import { type Project, projectSchema, shownAs } from './schemas.ts'

export const projectExample: Project = projectSchema.parse({
  ...shownAs('list', ({ example }) => example),
  days_remaining: 12,
  updated_at: '2026-03-19T10:12:41.007Z',
})

export const invalidParameterExample = invalidParameterBody('limit', 'must be a whole number from 1 to 100')
