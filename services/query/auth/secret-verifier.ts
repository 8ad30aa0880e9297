/**
 * Verifies secrets, and remembers a hash of the correct one: the HMAC takes as long as the rest of a cached response,
 * and a client sends the same secret with every request.
 *
 * A remembered hash belongs to one loaded state of a key and is dropped with it. Only a request with the correct secret
 * is answered faster, so the time of a refusal still does not reveal which keys exist.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { noSecretHash, verifySecret } from '../../shared/api-keys/credentials.ts'
import type { ApiKey } from './key-ring.ts'

/**
 * Whether the secret belongs to the key. If the key is `undefined`, it takes the same steps as for a wrong secret, and
 * returns false.
 */
export type SecretVerifier = (known: ApiKey | undefined, secret: string) => boolean

// What an unknown key is compared with: shaped like a known key, and made once.
const unknownKey: ApiKey = { key: '', secretHash: noSecretHash, scopes: [] }

/** Creates a verifier for secrets that were hashed with this pepper. */
export function createSecretVerifier(pepper: string): SecretVerifier {
  const rightDigests = new WeakMap<ApiKey, Buffer>()
  const noDigest = Buffer.alloc(32)
  return (known = unknownKey, secret) => {
    const digest = hash('sha256', secret, 'buffer')
    const right = rightDigests.get(known) ?? noDigest
    if (timingSafeEqual(digest, right) && right !== noDigest) return true
    const isValid = verifySecret(pepper, secret, known.secretHash)
    if (isValid) rightDigests.set(known, digest)
    return isValid
  }
}
