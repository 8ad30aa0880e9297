/**
 * A refusal must not show by its time whether the key exists. Times are not compared here, because a busy machine would
 * decide that test. The steps are compared: everything that hashes, decodes, allocates or compares.
 */
import { afterEach, expect, it, vi } from 'vitest'
import { hashSecret } from '../../../../services/api-keys/credentials.ts'
import type { ApiKey } from '../../../../services/query/auth/key-ring.ts'
import { createSecretVerifier } from '../../../../services/query/http/admission.ts'

const steps = vi.hoisted(() => [] as string[])

vi.mock('node:crypto', async importOriginal => {
  const crypto = await importOriginal<typeof import('node:crypto')>()
  return {
    ...crypto,
    hash: (...call: Parameters<typeof crypto.hash>) => {
      steps.push(`hash ${call[0]}`)
      return crypto.hash(...call)
    },
    createHmac: (...call: Parameters<typeof crypto.createHmac>) => {
      steps.push(`hmac ${call[0]}`)
      return crypto.createHmac(...call)
    },
    timingSafeEqual: (a: Uint8Array, b: Uint8Array) => {
      steps.push(`compare ${a.length} and ${b.length} bytes`)
      return crypto.timingSafeEqual(a, b)
    },
  }
})

afterEach(() => vi.restoreAllMocks())

/** The steps of one call, in their order. */
function stepsOf(call: () => unknown): string[] {
  const from = Buffer.from
  const { alloc } = Buffer
  const { repeat } = String.prototype
  const { get } = WeakMap.prototype
  vi.spyOn(Buffer, 'from').mockImplementation(((value: string, encoding?: BufferEncoding) => {
    steps.push(`decode ${value.length} characters of ${encoding}`)
    return from(value, encoding)
  }) as typeof Buffer.from)
  vi.spyOn(Buffer, 'alloc').mockImplementation(bytes => {
    steps.push(`allocate ${bytes} bytes`)
    return alloc(bytes)
  })
  vi.spyOn(String.prototype, 'repeat').mockImplementation(function (this: string, count) {
    steps.push(`repeat ${this} ${count} times`)
    return repeat.call(this, count)
  })
  vi.spyOn(WeakMap.prototype, 'get').mockImplementation(function (this: WeakMap<WeakKey, unknown>, key) {
    steps.push('look up the remembered hash')
    return get.call(this, key)
  })
  steps.length = 0
  call()
  vi.restoreAllMocks()
  return [...steps]
}

it('takes the same steps for an unknown key as for a wrong secret, also while it remembers the right one', () => {
  const verify = createSecretVerifier('pepper')
  const known: ApiKey = { key: 'k', secretHash: hashSecret('pepper', 'right'), scopes: [] }
  const ofKnown = stepsOf(() => verify(known, 'wrong'))
  expect(ofKnown).toContain('hmac sha256')
  expect(ofKnown.filter(step => step.startsWith('compare'))).toHaveLength(2)
  expect(stepsOf(() => verify(undefined, 'wrong'))).toEqual(ofKnown)
  expect(verify(known, 'right')).toBe(true)
  expect(stepsOf(() => verify(undefined, 'wrong'))).toEqual(stepsOf(() => verify(known, 'wrong')))
})
