import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSlugIndex, slugCodeOf } from '../../../../services/query/lists/slug-index.ts'
import { seededRandom } from '../../../bench/cold-requests.ts'

test('a code is that of a slug in UTF-8, as ClickHouse computes it', () => {
  // SELECT CRC32('çok güzel')
  expect(slugCodeOf('çok güzel')).toBe(816_194_285)
})

test('the slug index finds the only slot of a code after any additions, changes and removals', () => {
  // The last bits choose the cell, so these codes meet each other.
  const code = fc.tuple(fc.nat(3), fc.nat(2)).map(([low, high]) => high * 2 ** 20 + low)
  const step = fc.record({ slot: fc.nat(12), code: fc.option(code) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const index = createSlugIndex({ sizeExpected: 0 })
      const model = new Map<number, number>()
      for (const { slot, code } of steps) {
        if (code !== null) {
          index.put(slot, code, !model.has(slot))
          model.set(slot, code)
        } else if (model.delete(slot)) index.remove(slot)
        for (const wanted of [...model.values(), 7]) {
          const slots = [...model].filter(([, its]) => its === wanted).map(([its]) => its)
          expect(index.find(wanted)).toBe(slots.length === 1 ? slots[0] : undefined)
        }
      }
    }),
  )
})

test('the slug index grows', () => {
  const random = seededRandom(1)
  const codes = Array.from({ length: 10_000 }, () => Math.floor(random() * 2 ** 32))
  const index = createSlugIndex({ sizeExpected: 0 })
  for (const [slot, code] of codes.entries()) index.put(slot, code, true)
  for (const [slot, code] of codes.entries()) expect(index.find(code)).toBe(slot)
})
