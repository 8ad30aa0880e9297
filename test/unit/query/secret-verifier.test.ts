import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSecretVerifier } from '../../../services/query/http/secret-verifier.ts'
import type { ApiKey } from '../../../services/query/key-ring.ts'
import { hashSecret } from '../../../services/shared/credentials.ts'

const keyOf = (secret: string): ApiKey => ({ key: 'k', secretHash: hashSecret('pepper', secret), scopes: [] })

describe('the verifier of secrets', () => {
  it('says of any sequence of secrets what the stored hash says, however often they come', () => {
    const secrets = fc.constantFrom('right', 'wrong', '', 'right ', 'Right')
    const known = fc.constantFrom('first', 'second', 'nobody')
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

  it('forgets what was right when the key was loaded anew with another hash', () => {
    const verify = createSecretVerifier('pepper')
    expect(verify(keyOf('old'), 'old')).toBe(true)
    expect(verify(keyOf('new'), 'old')).toBe(false)
    expect(verify(keyOf('new'), 'new')).toBe(true)
  })

  it('does not take the digest that stands in for none as right', () => {
    const verify = createSecretVerifier('pepper')
    expect(verify({ key: 'k', secretHash: '0'.repeat(64), scopes: [] }, '')).toBe(false)
    expect(verify(undefined, '')).toBe(false)
  })
})
