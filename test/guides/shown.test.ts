/** Checks that a guide that differs from its lines' output is noticed. */
import { expect, test } from 'vitest'
import { differenceOf } from './shown.ts'

const json = (text: string, isExample = false) => ({ language: 'json' as const, text, isExample })
const lines = (text: string) => ({ language: 'text' as const, text, isExample: false })

test.each([
  ['another value', '{"a":1}', json('{"a":2}')],
  ['a field that is not shown', '{"a":1,"b":2}', json('{"a":1}')],
  ['a field that is missing', '{"a":1}', json('{"a":1,"b":2}')],
  ['a list of another length', '{"a":[1]}', json('{"a":[1,2]}')],
  ['a value of another type in an example', '{"a":1}{"a":"1"}', json('{"a":7}', true)],
  ['another field in a list of an example', '{"a":[{"b":1},{"c":1}]}', json('{"a":[{"b":2}]}', true)],
  ['no answer', '', json('{"a":1}')],
  ['another line', 'one\ntwo\n', lines('three')],
  ['lines in another order', 'one\ntwo\n', lines('two\none')],
  ['a part of a line', 'one and two\n', lines('one')],
])('%s is noticed', (_what, output, shown) => {
  expect(differenceOf(output, shown)).toBeTypeOf('string')
})

test.each([
  ['the same values', '{"a":[1,{"b":null}]}', json('{"a":[1,{"b":null}]}')],
  ['any value, and any other fields, for three dots', '{"a":1,"b":2}', json('{"a":"...","...":"..."}')],
  ['other values of the same types in an example', '{"a":[1,2]}', json('{"a":[7]}', true)],
  ['any items for the empty list of an example', '{"a":[{"b":1}]}', json('{"a":[]}', true)],
  ['lines with others between, and any words for three dots', 'one 1\nx\ntwo\n', lines('one ...\ntwo')],
])('%s is right', (_what, output, shown) => {
  expect(differenceOf(output, shown)).toBeUndefined()
})
