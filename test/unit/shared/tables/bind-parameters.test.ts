import { describe, expect, test } from 'vitest'
import { bindParameters } from '../../../../services/shared/tables/bind-parameters.ts'

describe('the parameters of a statement', () => {
  test('become literals of their declared types', () => {
    const query = "SELECT {a:String}, { b : DateTime64(3, 'UTC') }, {c:Nullable(UInt8)}, {d:Array(String)}"
    const query_params = { a: "it's \\ \0", b: '2026-01-02', c: null, d: ["x'y", 'z'] }
    expect(bindParameters({ query, query_params })).toBe(
      "SELECT CAST('it\\'s \\\\ \\0' AS String), CAST('2026-01-02' AS DateTime64(3, 'UTC')), " +
        "CAST(NULL AS Nullable(UInt8)), CAST('[\\'x\\\\\\'y\\',\\'z\\']' AS Array(String))",
    )
  })

  test('are not looked for in texts, quoted names, comments, or in each other', () => {
    const query =
      "SELECT '{a:String}', \"{a:String}\", `{a:String}`, '\\'{a:String}' /* {a:String} */ -- {a:String}"
    expect(bindParameters({ query, query_params: { a: 'x' } })).toBe(query)
    expect(bindParameters({ query: '{a:String}', query_params: { a: '{b:String}', b: 'no' } })).toBe(
      "CAST('{b:String}' AS String)",
    )
  })

  test.each([
    ['missing', undefined],
    ['not a number', Number.NaN],
    ['endless', Number.POSITIVE_INFINITY],
    ['rounded already', 2 ** 53],
    ['a date', new Date(0)],
    ['a function', () => 1],
    ['hidden in an array', [undefined]],
  ])('that are %s are refused by name', (_, value) => {
    const bind = () => bindParameters({ query: 'SELECT {limit:UInt8}', query_params: { limit: value } })
    expect(bind).toThrow(TypeError)
    expect(bind).toThrow('limit')
  })
})
