import { expect, test } from 'vitest'
import { createIdSlots } from '../../../services/query/id-slots.ts'
import { seededRandom } from '../../bench/cold-requests.ts'

const count = 5_000
const random = seededRandom(1)
const below = (bound: number) => Math.floor(random() * bound)

test('ids are found in their slots, whatever was added and removed before', () => {
  const ids: string[] = []
  const idSlots = createIdSlots(ids, { sizeExpected: 0 })
  const model = new Map<string, number>()
  for (let step = 0; step < 4 * count; step++) {
    const id = `id-${below(count)}`
    const known = model.get(id)
    expect(idSlots.find(id)).toBe(known)
    if (known === undefined) {
      const slot = ids.indexOf('') < 0 ? ids.length : ids.indexOf('')
      ids[slot] = id
      idSlots.add(id, slot)
      model.set(id, slot)
    } else if (below(3) > 0) {
      idSlots.remove(id)
      ids[known] = ''
      model.delete(id)
    }
  }
  expect(idSlots.size).toBe(model.size)
  expect([...idSlots.slots()]).toEqual([...model.values()].sort((a, b) => a - b))
  for (const [id, slot] of model) expect(idSlots.find(id)).toBe(slot)
})
