/** What grows travels in parts, so that a server with ClickHouse's own bound takes it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idLengthMax } from '../../../contracts/events/rules.ts'
import { idChunks, parameterText } from '../../../services/tables/clickhouse/statements.ts'

// ClickHouse's default of http_max_field_value_size.
const bytesMax = 131_072

test('any ids fit in their order into parameters of a server with default settings', () => {
  const character = fc.constantFrom('a', "'", '\\', 'é', '€', '😀')
  const id = fc.tuple(character, fc.nat({ max: 9 }), fc.integer({ min: 1, max: idLengthMax / 2 }))
  const ids = fc.array(
    id.map(([one, n, length]) => `${n}${one.repeat(length)}`),
    { maxLength: 3_000, size: 'max' },
  )
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 2_000 }), (all, countMax) => {
      const parts = [...idChunks(all, countMax)]
      expect(parts.flat()).toEqual(all)
      for (const part of parts) {
        expect(part.length).toBeGreaterThan(0)
        expect(part.length).toBeLessThanOrEqual(countMax)
        expect(Buffer.byteLength(parameterText(part))).toBeLessThan(bytesMax)
      }
    }),
    { numRuns: 30 },
  )
})
