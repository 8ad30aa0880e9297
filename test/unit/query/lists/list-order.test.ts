import { expect, test } from 'vitest'
import { createSlotOrder, type Sorting, sortedAtOnce } from '../../../../services/query/lists/list-order.ts'
import { sortedByColumn, sortedUnlessInOrder } from '../../../../services/query/lists/list-sorting.ts'
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
    expect([...sortedAtOnce(sortedByColumn(ascending, column, direction))]).toEqual(wanted)
  }
})

function* sortedSteps(slots: Iterable<number>, compare: (a: number, b: number) => number): Sorting {
  yield
  return Uint32Array.from([...slots].sort(compare))
}

test('an order stays correct when few, many or all of its slots change, come or go, and lists keep theirs', async () => {
  const values = Float64Array.from(ascending, () => below(100))
  const used = new Set<number>()
  const compare = (a: number, b: number) => (values[a] ?? 0) - (values[b] ?? 0) || a - b
  const order = createSlotOrder(compare, () => sortedSteps(used, compare))
  let kept = order.slots()
  for (const changes of [count, 1, 10, 100, 300, 3_000, 0, 20]) {
    const before = [...kept]
    const changed = new Set(Array.from({ length: changes }, () => below(count)))
    order.takeOut(Uint32Array.from([...changed].filter(slot => used.has(slot))))
    for (const slot of changed) {
      values[slot] = below(100)
      if (below(4) > 0) used.add(slot)
      else used.delete(slot)
    }
    order.putIn(Uint32Array.from([...changed].filter(slot => used.has(slot))))
    expect([...kept]).toEqual(before)
    if (changes % 2 === 0) await order.prepare(async () => undefined)
    kept = order.slots()
    expect([...kept]).toEqual([...used].sort(compare))
    const some = Uint32Array.from(used).filter(() => below(3) === 0)
    expect([...order.arrange(some)]).toEqual([...some].sort(compare))
  }
})

test('a change while an order is sorted in parts is in the order', async () => {
  const used = new Set(ascending)
  const compare = (a: number, b: number) => a - b
  const order = createSlotOrder(compare, () => sortedSteps(used, compare))
  await order.prepare(async () => {
    order.takeOut(Uint32Array.of(7))
    used.delete(7)
  })
  expect([...order.slots()]).toEqual([...used])
})

test('slots that are out of order are sorted, and those in order are left', () => {
  const compare = (a: number, b: number) => a - b
  const shuffled = Uint32Array.from(ascending, slot => (slot * 7_919) % count)
  expect(sortedAtOnce(sortedUnlessInOrder(shuffled, compare))).toEqual(ascending)
  expect(sortedAtOnce(sortedUnlessInOrder(ascending, compare))).toBe(ascending)
})
