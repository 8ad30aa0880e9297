import { expect, test } from 'vitest'
import { outcomeOf } from '../../../services/projector/producers/versions.ts'

const state = (version: number, content = 'x') => ({ version: BigInt(version), content })

/** The outcome of the last event of a batch. */
function last(own: ReturnType<typeof state>[], present: ReturnType<typeof state>[] = []) {
  const event = own.at(-1)
  if (!event) throw new Error('there is no event')
  return outcomeOf(event, { before: own.slice(0, -1), own, present })
}

test.each([
  ['the first event of a key', [state(3)], [], 'in_order'],
  ['a newer version than the ledger has', [state(3)], [state(2)], 'in_order'],
  ['an older one', [state(3)], [state(4)], 'stale'],
  ['an older one than before it in the batch', [state(4), state(3)], [], 'stale'],
  ['the same state again', [state(3)], [state(3)], 'in_order'],
  ['another state of a version that the ledger has', [state(3, 'y')], [state(3)], 'conflicting'],
  ['another state of a version in the batch', [state(3), state(3, 'y')], [], 'conflicting'],
  ['an older one that the ledger has with another state', [state(3, 'y')], [state(3), state(4)], 'stale'],
] as const)('%s', (_, own, present, expected) => {
  expect(last([...own], [...present])).toBe(expected)
})

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
  expect(last([state(9)], [{ ...deletion }])).toBe('stale')
})
