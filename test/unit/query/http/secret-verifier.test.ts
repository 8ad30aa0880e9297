import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashSecret } from '../../../../services/api-keys/credentials.ts'
import type { ApiKey } from '../../../../services/query/auth/key-ring.ts'
import { createSecretVerifier } from '../../../../services/query/http/admission.ts'

// As long as a secret that is remembered can be.
const long = 'r'.repeat(127)

// One character takes two bytes, so the last one does not fit, and both begin with the same 127 bytes.
const cut = { right: `\u00e9${'r'.repeat(125)}a`, wrong: `\u00e9${'r'.repeat(125)}b` }

const keyOf = (secret: string): ApiKey => ({ key: 'k', secretHash: hashSecret('pepper', secret), scopes: [] })

describe('the verifier of secrets', () => {
  it('agrees with the stored hash for any sequence of secrets', () => {
    const right: Record<string, string> = {
      first: 'right',
      second: 'Right',
      long,
      longer: `${long}r`,
      cut: cut.right,
      'other letters': '\u0172ight',
    }
    const wrong = ['wrong', '', 'right ', 'right\0', cut.wrong]
    const secrets = fc.constantFrom(...Object.values(right), ...wrong)
    const known = fc.constantFrom(...Object.keys(right), 'unknown')
    fc.assert(
      fc.property(fc.array(fc.tuple(known, secrets), { size: 'large' }), asked => {
        const verify = createSecretVerifier('pepper')
        const keys = Object.fromEntries(Object.entries(right).map(([name, secret]) => [name, keyOf(secret)]))
        const verified = new Set<string>()
        for (const [name, secret] of asked) {
          const isRight = right[name] === secret
          // What is not remembered is verified each time. A secret that is not remembered must never pass as one.
          const isRemembered = verify.remembers(keys[name], secret)
          expect(isRemembered).toBe(isRight && verified.has(name) && /^\w{1,127}$/.test(secret))
          expect(verify(keys[name], secret)).toBe(isRight)
          if (isRight) verified.add(name)
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
})
