/** The client's own types of the bodies, which are generated, are those of the schemas. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import type * as client from '../../../contracts/api/client/bodies.ts'
import type * as schemas from '../../../contracts/api/schemas.ts'
import type { ProjectListBody } from '../../../services/query/endpoints/projects.ts'
import type { Stats } from '../../../services/query/endpoints/stats.ts'
import { clientTypesText } from '../../../services/query/openapi/client-types.ts'

describe("the client's types", () => {
  // The type check decides this.
  it('equal the types of the schemas', () => {
    expectTypeOf<client.Project>().toEqualTypeOf<schemas.Project>()
    expectTypeOf<client.ProjectDetail>().toEqualTypeOf<schemas.ProjectDetail>()
    expectTypeOf<client.ProjectListBody>().toEqualTypeOf<ProjectListBody>()
    expectTypeOf<client.Reward>().toEqualTypeOf<schemas.Reward>()
    expectTypeOf<client.Stats>().toEqualTypeOf<Stats>()
  })

  it('are written with their descriptions, which cannot end a comment', () => {
    const text = clientTypesText(
      {
        A: {
          type: 'object',
          description: 'Ends */ here.',
          properties: {
            b: { type: ['string', 'null'], description: `${'word '.repeat(40)}end` },
            c: { type: 'array', items: { anyOf: [{ $ref: '#/components/schemas/D' }, { type: 'null' }] } },
          },
          required: ['b'],
        },
        D: { type: 'object', properties: { e: { type: 'integer' } } },
      },
      ['A'],
    )
    expect(text).toContain('/** Ends * / here. */\nexport interface A {\n  /**\n   * word')
    expect(text).toContain('  b: string | null\n  c?: (D | null)[]\n}\n')
    expect(text).toContain('export interface D {\n  e?: number\n}\n')
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(110)
  })

  it('are refused where the document has what no type is known for', () => {
    const schemas = { A: { type: 'object', properties: { b: { type: 'object' } } } }
    expect(() => clientTypesText(schemas, ['A'])).toThrow('A.b: no TypeScript type is known')
    expect(() => clientTypesText(schemas, ['B'])).toThrow('no schema B')
  })
})
