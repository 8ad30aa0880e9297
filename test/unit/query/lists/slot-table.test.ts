import fc from 'fast-check'
import { expect, test } from 'vitest'
import { slugCodeOf } from '../../../../services/query/lists/list-index.ts'
import { createSlotTable } from '../../../../services/query/lists/slot-table.ts'
import { seededRandom } from '../../../bench/cold-requests.ts'

test('the code of a slug is that of its UTF-8, as ClickHouse computes it', () => {
  // SELECT CRC32('çok güzel')
  expect(slugCodeOf('çok güzel')).toBe(816_194_285)
})

test('the table finds every slot by what it has, after any additions and removals', () => {
  // The last bits choose the cell, so these hashes meet each other.
  const hash = fc.tuple(fc.nat(3), fc.nat(2)).map(([low, high]) => high * 2 ** 20 + low)
  const step = fc.record({ slot: fc.nat(12), hash: fc.option(hash) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const hashes: number[] = []
      const table = createSlotTable(slot => hashes[slot] ?? 0, 0)
      const model = new Map<number, number>()
      for (const { slot, hash } of steps) {
        if (model.delete(slot)) table.remove(slot)
        if (hash !== null) {
          hashes[slot] = hash
          table.add(slot)
          model.set(slot, hash)
        }
        expect(table.size).toBe(model.size)
        for (let wanted = 0; wanted <= 12; wanted++) {
          const found = table.find(model.get(wanted) ?? 7, slot => slot === wanted)
          expect(found).toBe(model.has(wanted) ? wanted : undefined)
        }
      }
    }),
  )
})

test('the table grows', () => {
  const random = seededRandom(1)
  const hashes = Array.from({ length: 10_000 }, () => Math.floor(random() * 2 ** 32))
  const table = createSlotTable(slot => hashes[slot] ?? 0, 0)
  for (const slot of hashes.keys()) table.add(slot)
  for (const [wanted, hash] of hashes.entries())
    expect(table.find(hash, slot => slot === wanted)).toBe(wanted)
})
