import { expect, test } from 'vitest'
import { createIdIndex } from '../../../../services/query/lists/id-index.ts'
import { seededRandom } from '../../../bench/cold-requests.ts'

const count = 5_000
const random = seededRandom(1)
const below = (bound: number) => Math.floor(random() * bound)

test('the id index finds every id in its slot after any additions and removals', () => {
  const ids: string[] = []
  const idIndex = createIdIndex(ids, { sizeExpected: 0 })
  const model = new Map<string, number>()
  for (let step = 0; step < 4 * count; step++) {
    const id = `id-${below(count)}`
    const known = model.get(id)
    expect(idIndex.find(id)).toBe(known)
    if (known === undefined) {
      const slot = ids.indexOf('') < 0 ? ids.length : ids.indexOf('')
      ids[slot] = id
      idIndex.add(id, slot)
      model.set(id, slot)
    } else if (below(3) > 0) {
      idIndex.remove(id)
      ids[known] = ''
      model.delete(id)
    }
  }
  expect(idIndex.size).toBe(model.size)
  for (const [id, slot] of model) expect(idIndex.find(id)).toBe(slot)
})
