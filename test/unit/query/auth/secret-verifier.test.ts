import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ApiKey } from '../../../../services/query/auth/key-ring.ts'
import { createSecretVerifier } from '../../../../services/query/auth/secret-verifier.ts'
import { hashSecret } from '../../../../services/shared/api-keys/credentials.ts'

const keyOf = (secret: string): ApiKey => ({ key: 'k', secretHash: hashSecret('pepper', secret), scopes: [] })

describe('the verifier of secrets', () => {
  it('agrees with the stored hash for any sequence of secrets', () => {
    const secrets = fc.constantFrom('right', 'wrong', '', 'right ', 'Right')
    const known = fc.constantFrom('first', 'second', 'unknown')
    fc.assert(
      fc.property(fc.array(fc.tuple(known, secrets)), asked => {
        const verify = createSecretVerifier('pepper')
        const keys: Record<string, ApiKey> = { first: keyOf('right'), second: keyOf('Right') }
        for (const [name, secret] of asked) {
          const right: Record<string, string> = { first: 'right', second: 'Right' }
          const expected = right[name] === secret
          expect(verify(keys[name], secret)).toBe(expected)
        }
      }),
    )
  })

  it('forgets a verified secret when the key is loaded again with another hash', () => {
    const verify = createSecretVerifier('pepper')
    expect(verify(keyOf('old'), 'old')).toBe(true)
    expect(verify(keyOf('new'), 'old')).toBe(false)
    expect(verify(keyOf('new'), 'new')).toBe(true)
  })

  it('does not accept the placeholder digest', () => {
    const verify = createSecretVerifier('pepper')
    expect(verify({ key: 'k', secretHash: '0'.repeat(64), scopes: [] }, '')).toBe(false)
    expect(verify(undefined, '')).toBe(false)
  })
})
