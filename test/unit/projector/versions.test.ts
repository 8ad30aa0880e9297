import { expect, test } from 'vitest'
import { outcomeOf } from '../../../services/projector/producers/versions.ts'

const state = (version: number) => ({ version: BigInt(version), content: 'x' })

test('a batch that is in the ledger already, because the ledger was read too late, proves nothing about its own order', () => {
  const own = [state(3), state(4), state(5)]
  for (const event of own) {
    const before = own.filter(one => one.version < event.version)
    expect(outcomeOf(event, { before, own, present: [state(2), ...own] })).toBe('in_order')
  }
})

test('a deletion has no content that could differ', () => {
  const deletion = { version: 2n ** 64n - 1n, content: 'x' }
  const present = [{ ...deletion, content: 'y' }]
  expect(outcomeOf(deletion, { before: [], own: [deletion], present })).toBe('in_order')
})
