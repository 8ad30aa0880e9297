import { createHmac, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  generateApiKey,
  generateSecret,
  hashSecret,
  verifySecret,
} from '../../../services/api-keys/credentials.ts'

describe('API keys', () => {
  it('are pv_live_ and 24 base-62 digits, and differ', () => {
    const keys = Array.from({ length: 1000 }, () => generateApiKey(randomBytes))
    for (const key of keys) expect(key).toMatch(/^pv_live_[0-9A-Za-z]{24}$/)
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('throw away the bytes that would favour some digits', () => {
    // 62 goes four times into 256; what is left over are the bytes from 248.
    const bytes = (count: number) =>
      Uint8Array.from({ length: count }, (_, at) => (at < 8 ? 248 + at : at - 8))
    expect(generateApiKey(bytes)).toBe('pv_live_0123456789ABCDEF01234567')
    expect(generateApiKey(count => new Uint8Array(count).fill(247))).toBe(`pv_live_${'z'.repeat(24)}`)
  })
})

describe('secrets', () => {
  const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const numberOf = (digits: string) =>
    [...digits].reduce((sum, digit) => sum * 62n + BigInt(base62.indexOf(digit)), 0n)

  it('hold 256 random bits and the checksum of their digits, in a form that a leak scanner finds', () => {
    const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 })
    const edges = [new Uint8Array(32), new Uint8Array(32).fill(255)]
    fc.assert(
      fc.property(bytes, random => {
        const secret = generateSecret(() => random)
        const [, digits = '', checksum = ''] =
          /^pv_secret_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(secret) ?? []
        expect(numberOf(digits)).toBe(BigInt(`0x${Buffer.from(random).toString('hex')}`))
        expect(numberOf(checksum)).toBe(BigInt(crc32(digits)))
      }),
      { examples: edges.map(edge => [edge]) },
    )
  })

  it('are stored as HMAC-SHA-256 under the pepper, in lower-case hex', () => {
    expect(hashSecret('pepper', 'secret')).toBe(createHmac('sha256', 'pepper').update('secret').digest('hex'))
    expect(hashSecret('pepper', 'secret')).toMatch(/^[0-9a-f]{64}$/)
    expect(hashSecret('other', 'secret')).not.toBe(hashSecret('pepper', 'secret'))
  })

  it.each(['', 'abc', 'z'.repeat(64), '0'.repeat(63), '0'.repeat(64), '0'.repeat(65), 'é'.repeat(32)])(
    'never verify against %s, which is no hash, or stands in for a missing one',
    stored => {
      expect(verifySecret('pepper', 'secret', stored)).toBe(false)
    },
  )
})
