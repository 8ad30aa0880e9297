/** What a registry's answers mean: above all, when an event may be rejected for its schema, and when it must wait. */
import { describe, expect, test } from 'vitest'
import { readId, readSchema, SchemaRegistryError } from '../../../../services/log/registry/answers.ts'

const record = { type: 'record', name: 'R', fields: [] }

function ok(body: object): { status: number; body: string } {
  return { status: 200, body: JSON.stringify(body) }
}

function errorOf(work: () => unknown): SchemaRegistryError {
  try {
    work()
  } catch (error) {
    if (error instanceof SchemaRegistryError) return error
    throw error
  }
  throw new Error('it did not throw')
}

describe('the answer to a schema id', () => {
  test.each<[string, object]>([
    ['nothing beside it, as the first registries did', {}],
    ['its type', { schemaType: 'AVRO' }],
    ['nulls', { schemaType: null, references: null }],
    ['an empty list of references', { references: [] }],
    ['what later versions add', { guid: 'x', maxId: 9, metadata: {} }],
  ])('is the schema, with %s', (_, extras) => {
    expect(readSchema(ok({ schema: JSON.stringify(record), ...extras }))).toEqual({ schema: record })
  })

  test('may be a type that is no record: Avro decides what to make of it', () => {
    expect(readSchema(ok({ schema: '"string"' }))).toEqual({ schema: { type: 'string' } })
    expect(readSchema(ok({ schema: '["null","long"]' }))).toEqual({ schema: ['null', 'long'] })
  })

  test.each<[string, object, string]>([
    ['of another type', { schema: '{}', schemaType: 'JSON' }, 'type JSON; only AVRO'],
    ['Protobuf', { schema: 'syntax = "proto3";', schemaType: 'PROTOBUF' }, 'type PROTOBUF; only AVRO'],
    [
      'with references',
      { schema: '{}', references: [{ name: 'a', subject: 'b', version: 1 }] },
      'with references',
    ],
    ['that is not JSON', { schema: 'record R {}' }, 'not JSON'],
    ['that is a number', { schema: '7' }, 'not JSON'],
  ])('is the reason to reject, for a schema %s', (_, body, reason) => {
    expect(readSchema(ok(body))).toEqual({ reason: expect.stringMatching(new RegExp(`^is .*${reason}`)) })
  })

  test('is that there is no such schema, if the registry says so with its own code', () => {
    const body = JSON.stringify({ error_code: 40403, message: 'Schema not found' })
    expect(readSchema({ status: 404, body })).toBeUndefined()
  })

  test.each<[string, number, string]>([
    ['a proxy without a server behind it', 404, '<html>404</html>'],
    ['a wrong path', 404, '{"error_code":404,"message":"HTTP 404 Not Found"}'],
    ['another code', 404, '{"error_code":40401,"message":"Subject not found"}'],
    ['the right code under a wrong status', 500, '{"error_code":40403}'],
    ['a broken store', 500, '{"error_code":50001,"message":"Error in the backend data store"}'],
    ['a proxy without a registry', 502, 'Bad Gateway'],
    ['an overload', 429, ''],
    ['a page of success', 200, '<html>Welcome</html>'],
    ['success without a schema', 200, '{}'],
    ['success with half an answer', 200, '{"schema":"{'],
  ])('is a failure that may pass, and never a reason to reject: %s', (_, status, body) => {
    expect(errorOf(() => readSchema({ status, body })).retryable).toBe(true)
  })

  test.each<[string, number]>([
    ['without the credentials it wants', 401],
    ['forbidden', 403],
    ['not understood', 400],
    ['sent elsewhere', 302],
  ])('is a failure that stays, %s', (_, status) => {
    const error = errorOf(() => readSchema({ status, body: '' }))
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining(String(status)) })
  })

  test('of a failure is passed on in one line that has an end', () => {
    const body = JSON.stringify({ error_code: 50002, message: `much\nto say ${'x'.repeat(10_000)}` })
    const { message } = errorOf(() => readSchema({ status: 500, body }))
    expect(message).toMatch(/status 500: 50002 much to say x+$/)
    expect(message.length).toBeLessThan(300)
  })
})

describe('the answer to a schema under a subject', () => {
  test('is its id', () => {
    expect(readId(ok({ id: 7, version: 2 }))).toBe(7)
  })

  test.each([40401, 40403])('is that it has none yet, by the code %i', error_code => {
    expect(readId({ status: 404, body: JSON.stringify({ error_code, message: '' }) })).toBeUndefined()
  })

  test.each<[string, number, string, boolean]>([
    ['an incompatible schema', 409, '{"error_code":409,"message":"incompatible"}', false],
    ['an invalid schema', 422, '{"error_code":42201,"message":"invalid"}', false],
    ['a proxy without a server behind it', 404, '', true],
    ['an id that no value can be framed with', 200, '{"id":4294967296}', true],
    ['no id', 200, '{}', true],
  ])('is a failure for %s', (_, status, body, retryable) => {
    expect(errorOf(() => readId({ status, body })).retryable).toBe(retryable)
  })
})
