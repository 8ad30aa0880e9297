import { describe, expect, it } from 'vitest'
import {
  activeCount,
  isAlive,
  keyOfPath,
  keyPath,
  keyState,
} from '../../../../services/portal/keys/key-state.ts'
import { now, sampleKey } from './samples.ts'

describe('the state of a key', () => {
  it('is what the key can do now', () => {
    expect(keyState(sampleKey(), now)).toEqual({ name: 'active' })
    expect(keyState(sampleKey({ status: 'waiting' }), now)).toEqual({ name: 'waiting' })
    expect(keyState(sampleKey({ status: 'revoked', expires_at_ms: now + 1 }), now)).toEqual({
      name: 'revoked',
    })
    expect(keyState(sampleKey({ expires_at_ms: now + 1 }), now)).toEqual({ name: 'ending', until: now + 1 })
  })

  it('is ended as soon as its time is over, though the ledger still names it active', () => {
    const key = sampleKey({ expires_at_ms: now })
    expect(keyState(key, now)).toEqual({ name: 'ended', at: now })
    expect(isAlive(key, now)).toBe(false)
    expect(isAlive(sampleKey({ status: 'ended' }), now)).toBe(false)
    expect(activeCount([key, sampleKey(), sampleKey({ status: 'waiting' })], now)).toBe(1)
  })
})

describe('the path of a key', () => {
  it('has its first 16 characters only, and is read again', () => {
    const key = sampleKey()
    expect(keyPath(key)).toBe('/access/keys/pv_live_abcdefgh')
    expect(keyOfPath([sampleKey({ key: 'other' }), key], 'pv_live_abcdefgh')).toBe(key)
    expect(keyPath(sampleKey({ key: '../?#a b' }))).toBe('/access/keys/..%2F%3F%23a%20b')
  })

  it('names no key if two begin alike, so that the wrong one is never revoked', () => {
    const keys = [sampleKey(), sampleKey({ key: 'pv_live_abcdefgh-another' })]
    expect(keyOfPath(keys, 'pv_live_abcdefgh')).toBeUndefined()
  })
})
