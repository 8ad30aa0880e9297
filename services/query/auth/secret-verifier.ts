/**
 * Verifies secrets, and remembers the correct one: a client sends the same secret with every request, and even a plain hash
 * of it costs a tenth of a cached response.
 *
 * A remembered secret belongs to one loaded state of a key and is dropped with it: at the latest when the key is loaded
 * again, which the key ring does every minute, and at once when the key is revoked. Only a request with the correct secret
 * is answered faster, so the time of a refusal still does not reveal which keys exist.
 */
import { timingSafeEqual } from 'node:crypto'
import { noSecretHash, verifySecret } from '../../shared/api-keys/credentials.ts'
import type { ApiKey } from './key-ring.ts'

/**
 * Whether the secret belongs to the key. If the key is `undefined`, it takes the same steps as for a wrong secret, and
 * returns false.
 */
export type SecretVerifier = (known: ApiKey | undefined, secret: string) => boolean

// What an unknown key is compared with: shaped like a known key, and made once.
const unknownKey: ApiKey = { key: '', secretHash: noSecretHash, scopes: [] }

// A comparison in constant time needs equal lengths, so a secret is compared as a frame: its bytes, zeros, and its length
// in the last byte. Only plain ASCII that fits is remembered, because there one character is one byte. Ours are shorter.
const frameBytes = 128
const secretLengthMax = frameBytes - 1
const unframed = 255

/** Creates a verifier for secrets that were hashed with this pepper. */
export function createSecretVerifier(pepper: string): SecretVerifier {
  const rightSecrets = new WeakMap<ApiKey, Buffer>()
  const noSecret = Buffer.alloc(frameBytes, unframed)
  const presented = Buffer.alloc(frameBytes)

  /** Writes the secret into `presented`. Returns whether it could be remembered. */
  function frame(secret: string): boolean {
    presented.fill(0)
    const isShort = secret.length <= secretLengthMax
    const isFramed = presented.write(secret, 0, secretLengthMax) === secret.length && isShort
    presented[secretLengthMax] = isFramed ? secret.length : unframed
    return isFramed
  }

  return (known = unknownKey, secret) => {
    const isFramed = frame(secret)
    const right = rightSecrets.get(known) ?? noSecret
    if (timingSafeEqual(presented, right) && isFramed && right !== noSecret) return true
    const isValid = verifySecret(pepper, secret, known.secretHash)
    if (isValid && isFramed) rightSecrets.set(known, Buffer.alloc(frameBytes, presented))
    return isValid
  }
}
