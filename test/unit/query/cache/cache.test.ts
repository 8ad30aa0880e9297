import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFairStore } from '../../../../services/query/cache/cache.ts'
import { testClock } from '../../../support/query/app.ts'

interface Value {
  bytes: number
  createdAt: number
  expiresAt: number
}

function open(bytesMax: number) {
  const clock = testClock(0)
  const store = createFairStore<Value>({ bytesOf: ({ bytes }) => bytes }, bytesMax, clock.now)
  return { store, clock }
}

const lasting = { bytes: 10, createdAt: 0, expiresAt: 60_000 }

describe('a fair store', () => {
  it('keeps a value that several owners use until all of them have lost it', () => {
    const { store } = open(100)
    store.set('shared', lasting, 'large')
    store.get('shared', 'small')
    for (let n = 0; n < 100; n++) store.set(`${n}`, lasting, 'large')
    expect(store.get('shared', 'small')).toBe(lasting)
  })

  it('drops every expired value when it is told to, also behind one that lasts', () => {
    const { store, clock } = open(1_000)
    const expiring = { bytes: 10, createdAt: 0, expiresAt: 5 }
    store.set('a', lasting, 'one')
    store.set('b', expiring, 'one')
    clock.advance(5)
    store.dropExpired()
    // The clock goes back, so that only what was dropped is missing.
    clock.advance(-5)
    expect(['a', 'b'].map(key => store.get(key, 'one'))).toEqual([lasting, undefined])
  })

  it('never holds more than its limit, and loses nothing while everything fits', () => {
    const step = fc.record({
      key: fc.constantFrom(...'abcdefgh'),
      owner: fc.constantFrom('1', '2', '3'),
      bytes: fc.integer({ min: 1, max: 40 }),
      isSet: fc.boolean(),
      waitMs: fc.constantFrom(0, 0, 5),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.constantFrom(100, 1_000), (steps, bytesMax) => {
        const { store, clock } = open(bytesMax)
        const model = new Map<string, Value>()
        for (const { key, owner, bytes, isSet, waitMs } of steps) {
          clock.advance(waitMs)
          const value = { bytes, createdAt: clock.now(), expiresAt: clock.now() + 30 }
          if (isSet) {
            store.set(key, value, owner)
            model.set(key, value)
          } else if (bytesMax === 1_000) {
            const known = model.get(key)
            expect(store.get(key, owner)).toBe(known && clock.now() < known.expiresAt ? known : undefined)
          } else {
            store.get(key, owner)
          }
          const held = [...'abcdefgh'].map(name => store.get(name, owner)?.bytes ?? 0)
          expect(held.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(bytesMax)
        }
      }),
    )
  })
})
