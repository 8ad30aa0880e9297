import { expect, test } from 'vitest'
import { createSlotOrder, sortedByColumn } from '../../../../services/query/lists/list-order.ts'
import { seededRandom } from '../../../bench/cold-requests.ts'

const count = 5_000
const random = seededRandom(1)
const below = (bound: number) => Math.floor(random() * bound)
const ascending = Uint32Array.from({ length: count }, (_, slot) => slot)

test.each([
  ['dates, and none', () => (below(9) === 0 ? -8_640_000_000_000_000 : 1.5e12 + below(1_000))],
  ['money with digits', () => below(1_000_000_000) / 10_000],
  ['numbers of either sign', () => below(101) - 50],
  ['one and the same', () => 7],
])('a column is sorted as by comparison, equal ones in the order given: %s', (_, value) => {
  const column = Float64Array.from(ascending, value)
  for (const direction of [1, -1] as const) {
    const wanted = [...ascending].sort((a, b) => direction * ((column[a] ?? 0) - (column[b] ?? 0)))
    expect([...sortedByColumn(ascending, column, direction)]).toEqual(wanted)
  }
})

test('an order stays correct when few, many or all of its slots change, come or go', () => {
  const values = Float64Array.from(ascending, () => below(100))
  const used = new Set<number>()
  const compare = (a: number, b: number) => (values[a] ?? 0) - (values[b] ?? 0) || a - b
  const sorted = () => [...used].sort(compare)
  const order = createSlotOrder({ compare, sortAll: () => Uint32Array.from(sorted()) })
  for (const changes of [count, 1, 10, 1_000, 3_000, 0, 20]) {
    for (let change = 0; change < changes; change++) {
      const slot = below(count)
      values[slot] = below(100)
      const isUsed = below(4) > 0
      if (isUsed) used.add(slot)
      else used.delete(slot)
      order.note(slot, isUsed)
    }
    const wanted = sorted()
    expect([...order.slots()]).toEqual(wanted)
    const some = Uint32Array.from(used).filter(() => below(3) === 0)
    expect([...order.arrange(some)]).toEqual([...some].sort(compare))
  }
})
