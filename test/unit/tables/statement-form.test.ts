import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parameterText, statementForm } from '../../../services/tables/statement-form.ts'

const boundary = 'pledgeview-a-boundary'
// Letters of all kinds, and those that have a meaning, often.
const special = fc.constantFrom('\\', "'", '\t', '\n', '\r', '\0', '"', '-', ',', ']', 'N', 'é')
const text = fc
  .oneof(fc.string({ unit: 'binary' }), fc.string({ unit: special }))
  .filter(value => !value.includes(boundary))

describe('a statement as a form', () => {
  test('is what any reader of forms reads: the query and each parameter by its name', async () => {
    const parameters = fc.dictionary(fc.stringMatching(/^[a-z_]{1,9}$/), text)
    await fc.assert(
      fc.asyncProperty(text, parameters, async (query, values) => {
        const { body, contentType } = statementForm(query, values, boundary)
        const form = await new Response(body, { headers: { 'Content-Type': contentType } }).formData()
        expect(Object.fromEntries(form)).toEqual({
          query,
          ...Object.fromEntries(
            Object.entries(values).map(([name, value]) => [`param_${name}`, parameterText(value)]),
          ),
        })
        expect([...form.keys()]).toHaveLength(Object.keys(values).length + 1)
      }),
    )
  })
})

describe('the text of a parameter', () => {
  test('is one line without a tab, from which the value can be told exactly', () => {
    fc.assert(
      fc.property(text, value => {
        const escaped = parameterText(value)
        expect(escaped).not.toMatch(/[\t\n\r\0]/)
        expect(unescaped(escaped)).toBe(value)
      }),
    )
  })

  test('of an array ends no string before its time, whatever the strings hold', () => {
    fc.assert(
      fc.property(fc.array(text), values => {
        const literal = parameterText(values)
        expect(literal.at(0)).toBe('[')
        expect(literal.at(-1)).toBe(']')
        const strings = [...literal.matchAll(/'((?:[^'\\]|\\.)*)'/gs)].map(([, inner = '']) =>
          unescaped(inner),
        )
        expect(strings).toEqual(values)
        expect(literal.replace(/'(?:[^'\\]|\\.)*'/gs, '')).toBe(
          `[${','.repeat(Math.max(0, values.length - 1))}]`,
        )
      }),
    )
  })

  test.each([
    [null, '\\N'],
    ['', ''],
    ['\\N', '\\\\N'],
    ["it's", "it\\'s"],
    [1.5, '1.5'],
    [-3, '-3'],
    [2n ** 64n - 1n, '18446744073709551615'],
    [true, 'true'],
    [[], '[]'],
    [['a', null, 1, [2n]], "['a',NULL,1,[2]]"],
    [{ a: 'b', "c'": 1 }, "{'a':'b','c\\'':1}"],
  ])('of %s is %s', (value, expected) => {
    expect(parameterText(value)).toBe(expected)
  })

  test.each([[undefined], [() => 1], [Symbol('a')], [[undefined]], [{ a: undefined }]])(
    'cannot be made of %s',
    value => {
      expect(() => parameterText(value)).toThrow(TypeError)
    },
  )
})

/** As ClickHouse undoes escapes. */
function unescaped(escaped: string): string {
  const meant: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', 0: '\0' }
  return escaped.replace(/\\(.)/gs, (_, letter: string) => meant[letter] ?? letter)
}
