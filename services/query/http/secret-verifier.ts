/**
 * Verifies presented secrets, and remembers by a hash which one was right: the HMAC costs as much as the rest of a
 * cached answer, and a client sends the same secret with every request.
 *
 * What is remembered belongs to one loaded state of a key and goes with it. Only who presents the right secret is
 * answered sooner, so the delay of a refusal tells as little as before about which keys exist.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { verifySecret } from '../../shared/credentials.ts'
import type { ApiKey } from '../key-ring.ts'

/** Whether the secret is the key's. For no key (`undefined`) it does the work of a wrong secret, and says no. */
export type SecretVerifier = (known: ApiKey | undefined, secret: string) => boolean

export function createSecretVerifier(pepper: string): SecretVerifier {
  const rightDigests = new WeakMap<ApiKey, Buffer>()
  const noDigest = Buffer.alloc(32)
  return (known, secret) => {
    const digest = hash('sha256', secret, 'buffer')
    const right = known && rightDigests.get(known)
    if (timingSafeEqual(digest, right ?? noDigest) && right !== undefined) return true
    const isValid = verifySecret(pepper, secret, known?.secretHash)
    if (isValid && known) rightDigests.set(known, digest)
    return isValid
  }
}
