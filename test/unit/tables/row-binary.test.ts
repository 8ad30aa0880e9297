import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createRowWriter,
  encodeRows,
  type TableColumn,
} from '../../../services/tables/clickhouse/row-binary.ts'
import { decodeRows } from '../../support/clickhouse/row-binary.ts'

interface TypedValue {
  type: string
  value: unknown
  /** As ClickHouse has it, where that is something else. */
  read: unknown
}

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  // Around the lengths where a length takes a byte more, and where texts are written in another way.
  fc
    .tuple(
      fc.constantFrom('a', 'é', '€', '𝄞'),
      fc.constantFrom(0, 1, 31, 32, 33, 41, 42, 43, 127, 128, 5_461, 16_384),
    )
    .map(([letter, length]) => letter.repeat(length)),
)
const uint64 = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(0n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n),
)
const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(-(2n ** 63n), -(2n ** 53n), -1n, 0n, 2n ** 32n, 2n ** 53n, 2n ** 63n - 1n),
)

function of(type: string, values: fc.Arbitrary<unknown>): fc.Arbitrary<TypedValue> {
  return values.map(value => ({ type, value, read: value }))
}

const primitive = fc.oneof(
  of('String', text),
  of('LowCardinality(String)', text),
  of('Bool', fc.boolean()),
  of('UInt8', fc.nat(2 ** 8 - 1)),
  of('UInt16', fc.nat(2 ** 16 - 1)),
  of('UInt32', fc.nat(2 ** 32 - 1)),
  of('UInt64', uint64),
  of('Int64', int64),
  fc.maxSafeNat().map(value => ({ type: 'UInt64', value, read: BigInt(value) })),
  fc.maxSafeInteger().map(value => ({ type: 'Int64', value, read: BigInt(value) })),
  of("DateTime64(3, 'UTC')", fc.integer({ min: -1e14, max: 1e14 })),
)

const typedValue: fc.Arbitrary<TypedValue> = fc.oneof(
  primitive,
  primitive.chain(({ type, value, read }) =>
    fc.constantFrom(
      { type: `Nullable(${type})`, value, read },
      { type: `Nullable(${type})`, value: null, read: null },
      { type: `Array(${type})`, value: [], read: [] },
      { type: `Array(${type})`, value: [value, value], read: [read, read] },
      { type: `Array(Nullable(${type}))`, value: [null, value], read: [null, read] },
      { type: `Array(Array(${type}))`, value: [[], [value]], read: [[], [read]] },
    ),
  ),
  fc
    .array(
      primitive.filter(({ type }) => !type.includes(',')),
      { minLength: 1, maxLength: 5 },
    )
    .map(elements => ({
      type: `Array(Tuple(${elements.map(({ type }, i) => `e${i} ${type}`).join(', ')}))`,
      value: [Object.fromEntries(elements.map(({ value }, i) => [`e${i}`, value]))],
      read: [Object.fromEntries(elements.map(({ read }, i) => [`e${i}`, read]))],
    })),
)

describe('rows as bytes', () => {
  test('are read as what was written, whatever the types and values', () => {
    fc.assert(
      fc.property(
        fc.array(typedValue, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 3 }),
        (row, count) => {
          const columns = columnsOf(row.map(({ type }) => type))
          const values = row.map(({ value }) => value)
          // A buffer that is too small for any of them.
          const writer = createRowWriter(columns, 1)
          for (let i = 0; i < count; i++) writer.add(values)
          expect(writer.rows).toBe(count)
          const expected = Object.fromEntries(row.map(({ read }, i) => [`c${i}`, read]))
          const expectedRows = Array.from({ length: count }, () => expected)
          expect(decodeRows({ columns, rows: writer.bytes() })).toEqual(expectedRows)
          expect(decodeRows({ columns, rows: encodeRows(columns, [values]) })).toEqual([expected])
        },
      ),
    )
  })

  test('have no half of a row that could not be written, wherever that failed', () => {
    const columns = columnsOf(['String', 'Array(UInt8)', 'Nullable(UInt32)', 'Tuple(a UInt8, b Int64)'])
    const good = fc.tuple(
      text,
      fc.array(fc.nat(255)),
      fc.option(fc.nat()),
      fc.record({ a: fc.nat(255), b: int64 }),
    )
    const wrong = fc.constantFrom<unknown[]>(
      [1, [1], 1, { a: 1, b: 1 }],
      ['long enough to be seen', 'no array', 1, { a: 1, b: 1 }],
      ['long enough to be seen', [1, 2, 3, -1], 1, { a: 1, b: 1 }],
      ['long enough to be seen', [1], 'one', { a: 1, b: 1 }],
      ['long enough to be seen', [1], 1, null],
      ['long enough to be seen', [1], 1, { a: 1 }],
      ['long enough to be seen', [1], 1, { a: 1, b: 2n ** 63n }],
      ['long enough to be seen', [1], 1],
      [],
    )
    const attempt = fc.oneof(
      good.map(row => ({ row: row as unknown[], isGood: true })),
      wrong.map(row => ({ row, isGood: false })),
    )
    fc.assert(
      fc.property(fc.array(attempt), attempts => {
        const writer = createRowWriter(columns, 1)
        for (const { row, isGood } of attempts) {
          if (isGood) writer.add(row)
          else expect(() => writer.add(row)).toThrow()
        }
        const rows = attempts.filter(({ isGood }) => isGood).map(({ row }) => row)
        expect(writer.rows).toBe(rows.length)
        expect(Buffer.compare(writer.bytes(), encodeRows(columns, rows))).toBe(0)
      }),
    )
  })

  const unfit: [type: string, error: typeof RangeError, values: unknown[]][] = [
    ['UInt8', RangeError, [-1, 256, 0.5, Number.NaN, Number.POSITIVE_INFINITY]],
    ['UInt16', RangeError, [-1, 65_536, 1.5, Number.NaN]],
    ['UInt32', RangeError, [-1, 2 ** 32, 2.5, Number.NaN]],
    ['UInt64', RangeError, [-1, -1n, 2n ** 64n, 2 ** 53, 0.5, Number.NaN]],
    ['Int64', RangeError, [2n ** 63n, -(2n ** 63n) - 1n, 2 ** 53, -(2 ** 53), 0.5, Number.NaN]],
    ["DateTime64(3, 'UTC')", RangeError, [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]],
    ['String', TypeError, [1, null, undefined, ['a']]],
    ['Bool', TypeError, [1, 0, 'true', null, undefined]],
    ['UInt8', TypeError, ['1', 1n, true, null, undefined]],
    ['UInt64', TypeError, ['1', true, null, undefined]],
    ["DateTime64(3, 'UTC')", TypeError, ['2026-01-01', new Date(0), 1n, null, undefined]],
    ['Nullable(String)', TypeError, [undefined, 1]],
    ['Array(String)', TypeError, ['a', { length: 0 }, null, undefined, [null]]],
    ['Tuple(a String)', TypeError, ['a', null, undefined, {}, { b: 'a' }]],
  ]

  test.each(unfit)('are not made of what %s would not keep as it is (%#)', (type, error, values) => {
    for (const value of values)
      expect(() => encodeRows(columnsOf([type]), [[value]]), String(value)).toThrow(error)
  })

  test('quote no value when they cannot be written: what is inserted is private', () => {
    const cases: [type: string, value: unknown][] = [
      ['UInt8', 4_242_424_242],
      ['UInt64', -4_242_424_242n],
      ['Int64', 4_242_424_242.5],
      ['Int64', 4_242_424_242n * 2n ** 40n],
      ['Bool', 'name 4242424242'],
      ['Array(String)', 'name 4242424242'],
      ['Tuple(a String)', 'name 4242424242'],
      ["DateTime64(3, 'UTC')", '4242424242'],
    ]
    for (const [type, value] of cases) {
      expect(() => encodeRows(columnsOf([type]), [[value]])).toThrow(
        expect.not.objectContaining({ message: expect.stringMatching(/4242|466/) }),
      )
    }
  })
})

function columnsOf(types: readonly string[]): TableColumn[] {
  return types.map((type, i) => ({ name: `c${i}`, type }))
}
