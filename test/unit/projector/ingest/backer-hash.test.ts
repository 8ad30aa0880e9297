import { describe, expect, test } from 'vitest'
import { backerHasher, createSipHash } from '../../../../services/projector/ingest/backer-hash.ts'
import { unsigned64 } from '../../../support/clickhouse/row-binary.ts'

test('the hash that tables began with never changes', () => {
  expect(unsigned64(backerHasher('ab'.repeat(32))('backer-4711'))).toBe(496_755_704_303_526_461n)
})

describe('SipHash-2-4', () => {
  const key = Uint8Array.from({ length: 16 }, (_, n) => n)
  const inputOf = (length: number) => String.fromCharCode(...Array.from({ length }, (_, n) => n))

  // From the paper: the key 00 to 0f, and inputs 00, 00 01, and so on.
  test.each([
    [0, 0x726fdb47dd0e0e31n],
    [1, 0x74f839c593dc67fdn],
    [7, 0xab0200f58b01d137n],
    [8, 0x93f5f5799a932462n],
    [15, 0xa129ca6149be45e5n],
    [63, 0x958a324ceb064572n],
  ])('of %i bytes is what the paper says', (length, expected) => {
    expect(unsigned64(createSipHash(key)(inputOf(length)))).toBe(expected)
  })
})
