/** The promises of the tables port on values: what is written, and what a statement gets as a parameter, arrives as it is. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rowsOf, useDatabase } from '../../support/clickhouse/use-database.ts'

const { tables, freshTable } = useDatabase()

const nastyTexts = [
  '',
  ' ',
  'tab\tnewline\ncarriage return\rback\bfeed\f',
  'backslash \\ \\n \\t \\N \\\\',
  'NUL \0 in the middle',
  '\0',
  "'single' \"double\" `back` ''",
  "'); DROP TABLE t; --",
  'semicolon; and more;\n;',
  '{value:String} ${value} %s $1',
  '-- no comment /* nor this */ # nor that',
  '\u{1F469}\u200D\u{1F680} \u{10FFFF} \uFEFF \u202E é 日本語',
  '\\',
  '\t',
  '\n',
]

describe('what is inserted', () => {
  test('a resolved insert is visible to every later statement', async () => {
    const table = await freshTable('n UInt32')
    for (let n = 1; n <= 5; n++) {
      await tables().insert(rowsOf(table, { n: 'UInt32' }, [[n]]))
      const seen = await Promise.all(
        Array.from({ length: 12 }, () =>
          tables().rows<{ rows: number }>({ query: `SELECT count() AS rows FROM ${table}` }),
        ),
      )
      expect(new Set(seen.map(([row]) => row?.rows))).toEqual(new Set([n]))
    }
  })

  test('brings every text back as it was', async () => {
    const table = await freshTable('position UInt32, before String, text String, after String')
    const texts = [...nastyTexts, ...fc.sample(fc.string({ unit: 'binary' }), { numRuns: 200, seed: 7 })]
    const columns = { position: 'UInt32', before: 'String', text: 'String', after: 'String' }
    await tables().insert(
      rowsOf(
        table,
        columns,
        texts.map((text, position) => [position, text, text, text]),
      ),
    )
    const rows = await tables().rows({
      query: `SELECT before, text, after FROM ${table} ORDER BY position`,
    })
    expect(rows).toEqual(texts.map(text => ({ before: text, text, after: text })))
  })

  test('brings every value of every type back as it was', async () => {
    const values: [type: string, value: unknown, shown: unknown][] = [
      ['UInt8', 255, 255],
      ['UInt16', 65_535, 65_535],
      ['UInt32', 4_294_967_295, 4_294_967_295],
      ['UInt64', 2n ** 64n - 1n, '18446744073709551615'],
      ['UInt64', 2 ** 53 - 1, '9007199254740991'],
      ['Int64', -(2n ** 63n), '-9223372036854775808'],
      ['Int64', -1, '-1'],
      ['Int64', 2 ** 40, '1099511627776'],
      ['Bool', true, true],
      ['LowCardinality(String)', 'é'.repeat(200), 'é'.repeat(200)],
      ['Nullable(String)', null, null],
      ['Nullable(String)', '', ''],
      ["DateTime64(3, 'UTC')", Date.UTC(1900, 0, 1), '1900-01-01 00:00:00.000'],
      ["DateTime64(3, 'UTC')", Date.UTC(2299, 11, 31, 1, 2, 3, 4), '2299-12-31 01:02:03.004'],
      ["Nullable(DateTime64(3, 'UTC'))", null, null],
      ['Array(String)', ['', 'a\tb'], ['', 'a\tb']],
      [
        'Array(Tuple(a String, b Nullable(Int64)))',
        [
          { a: 'x', b: null },
          { b: 7, a: '' },
        ],
        [
          { a: 'x', b: null },
          { a: '', b: 7 },
        ],
      ],
    ]
    const columns = Object.fromEntries(values.map(([type], n) => [`c${n}`, type]))
    const definition = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    const table = await freshTable(definition.join(', '))
    await tables().insert(
      rowsOf(
        table,
        columns,
        [1, 2, 3].map(() => values.map(([, value]) => value)),
      ),
    )
    const shown = values.map(([type], n) => (/^U?Int64$/.test(type) ? `toString(c${n}) AS c${n}` : `c${n}`))
    const expected = Object.fromEntries(values.map(([, , value], n) => [`c${n}`, value]))
    expect(await tables().rows({ query: `SELECT ${shown.join(', ')} FROM ${table}` })).toEqual([
      expected,
      expected,
      expected,
    ])
  })

  test('rows whose types are not those of the table are refused, and not read as something else', async () => {
    const table = await freshTable('a Int64, b String')
    for (const columns of [{ a: 'UInt64' }, { b: 'Nullable(String)' }, { a: 'Int64', b: 'Bool' }]) {
      const values = { UInt64: 1, 'Nullable(String)': 'x', Int64: 1, Bool: true }
      const row = Object.values(columns).map(type => values[type as keyof typeof values])
      const refused = tables().insert(rowsOf(table, columns, [row]))
      await expect(refused).rejects.toMatchObject({ name: 'TablesError', retryable: false })
    }
    expect(await tables().rows({ query: `SELECT count() AS rows FROM ${table}` })).toEqual([{ rows: 0 }])
  })

  test('64-bit integers and decimals come as numbers, timestamps as text, null as null', async () => {
    const query = `SELECT toUInt64(9007199254740991) AS big, toInt64(-1) AS negative, toDecimal128('12.5', 4) AS money,
      toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC') AS time, CAST(NULL AS Nullable(String)) AS nothing, true AS yes`
    expect(await tables().rows({ query })).toEqual([
      {
        big: 9007199254740991,
        negative: -1,
        money: 12.5,
        time: '2026-01-02 03:04:05.678',
        nothing: null,
        yes: true,
      },
    ])
  })
})

describe('parameters', () => {
  const values: [type: string, value: unknown, expected?: unknown][] = [
    ...nastyTexts.map(text => ['String', text] as [string, unknown]),
    ['String', 'NULL'],
    ['String', '\\N'],
    ['Nullable(String)', null],
    ['Nullable(String)', 'NULL'],
    ['UInt8', 3],
    ['UInt32', 4_294_967_295],
    ['Int64', '-9223372036854775808', '-9223372036854775808'],
    ['UInt64', '18446744073709551615', '18446744073709551615'],
    ['UInt64', 18446744073709551615n, '18446744073709551615'],
    ['Bool', true],
    ['Bool', false],
    ['Float64', 0.25],
    ["DateTime64(3, 'UTC')", '2026-01-02 03:04:05.678'],
    ['Array(String)', nastyTexts],
    ['Array(String)', []],
    ['Map(String, UInt64)', Object.fromEntries(nastyTexts.map((text, index) => [text, index]))],
    ['Map(String, UInt64)', {}],
  ]

  test.each(values)(
    'a parameter of type %s arrives as it is (value %#)',
    async (type, value, expected = value) => {
      const shown = /^U?Int64$/.test(type) ? `toString({value:${type}})` : `{value:${type}}`
      const rows = await tables().rows({
        query: `SELECT ${shown} AS value, toTypeName({value:${type}}) AS type`,
        query_params: { value },
      })
      expect(rows).toEqual([{ value: expected, type }])
    },
  )
})
