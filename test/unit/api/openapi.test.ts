import { describe, expect, it } from 'vitest'
import { operations } from '../../../services/query/endpoints/all.ts'
import { buildOpenApi } from '../../../services/query/openapi/openapi.ts'

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

const document = JSON.parse(JSON.stringify(buildOpenApi('0.0.0'))) as { [name: string]: Json }

function find(pointer: string): Json | undefined {
  return pointer
    .replace(/^#\//, '')
    .split('/')
    .reduce<Json | undefined>(
      (node, name) =>
        (node as { [name: string]: Json } | undefined)?.[name.replaceAll('~1', '/').replaceAll('~0', '~')],
      document,
    )
}

function walk(node: Json, visit: (node: { [name: string]: Json }) => void): void {
  if (node === null || typeof node !== 'object') return
  if (!Array.isArray(node)) visit(node)
  for (const child of Object.values(node)) walk(child, visit)
}

describe('the OpenAPI document', () => {
  it('describes every property, parameter, header and schema', () => {
    const bare: string[] = []
    const described = (node: Json | undefined): boolean => {
      const { $ref, description } = node as { $ref?: string; description?: string }
      return $ref === undefined ? /\.$/.test(description ?? '') : described(find($ref))
    }
    walk(document, node => {
      for (const [name, value] of Object.entries(node.properties ?? {})) {
        if (!described(value)) bare.push(name)
      }
      for (const parameter of (node.parameters ?? []) as { name: string }[]) {
        if (!described(parameter)) bare.push(parameter.name)
      }
    })
    for (const part of ['headers', 'schemas', 'securitySchemes']) {
      const all = find(`#/components/${part}`) as { [name: string]: Json }
      bare.push(...Object.keys(all).filter(name => !described(all[name])))
    }
    expect(bare).toEqual([])
  })

  it('marks the operations of a deprecated version, and of no other', () => {
    const deprecation = { since: '2030-01-01T00:00:00Z', sunset: null, successor: '/api/v2' }
    const apiVersions = [{ name: 'v1', basePath: '/api/v1', deprecation }]
    const marks = (of: object) => {
      const found: unknown[] = []
      walk(of as Json, node => {
        if (typeof node.operationId === 'string') found.push([node.operationId, node.deprecated ?? false])
      })
      return found
    }
    expect(marks(document)).not.toContainEqual([expect.anything(), true])
    const marked = marks(JSON.parse(JSON.stringify(buildOpenApi('0.0.0', apiVersions))))
    expect(marked).toContainEqual(['listProjects', true])
    expect(marked).not.toContainEqual([expect.stringMatching(/^(get|list)/), false])
  })

  it('has no path that a parameter of another one matches: a campaign with that slug would be hidden', () => {
    const isMatched = (path: string, by: string) => {
      const [parts, others] = [path.split('/'), by.split('/')]
      return (
        parts.length === others.length && others.every((other, n) => other === parts[n] || /^{/.test(other))
      )
    }
    const paths = operations.map(({ path }) => path)
    expect(isMatched('/projects/count', '/projects/{slug}')).toBe(true)
    const hidden = paths.filter(path => paths.some(by => by !== path && isMatched(path, by)))
    expect(hidden).toEqual([])
  })

  it('closes no object, because fields may be added', () => {
    walk(document, node => expect(node).not.toHaveProperty('additionalProperties'))
  })

  it('names first the way to authenticate that is one scheme, which is all that some tools take', () => {
    expect(document.security).toEqual([{ bearer: [] }, { apiKey: [], apiSecret: [] }])
  })

  // Generated clients lost cents of an amount, took no large count, and matched a pattern against a date that they had parsed.
  it('has the width of each number of an answer, and no pattern of a moment', () => {
    const widths: Record<string, Json> = { number: 'double', integer: 'int64' }
    const wrong: Json[] = []
    walk(document.components ?? null, node => {
      const { type, format, pattern } = node
      const isMoment = format === 'date-time'
      if (format !== (widths[String(type)] ?? format) || (isMoment && pattern !== undefined)) wrong.push(node)
    })
    expect(wrong).toEqual([])
  })

  it.each(operations)('has a complete and valid example of $path', ({ schema, example }) => {
    expect(schema.parse(example)).toEqual(example)
  })
})
