/**
 * Verifies secrets, and remembers the correct one: a client sends the same secret with every request, and even a plain hash
 * of it costs a tenth of a cached response.
 *
 * A remembered secret belongs to one loaded state of a key and is dropped with it: when the key is revoked, and whenever
 * it is loaded again, which the key ring does about every minute. Only a request with the correct secret
 * is answered faster, so the time of a refusal still does not reveal which keys exist.
 */
import { timingSafeEqual } from 'node:crypto'
import { noSecretHash, verifySecret } from '../../api-keys/credentials.ts'
import type { ApiKey } from './key-ring.ts'

/** If the key is `undefined`, both functions do the same work as for a wrong secret, and return false. */
export interface SecretVerifier {
  /** Whether the secret belongs to the key. */
  (known: ApiKey | undefined, secret: string): boolean
  /** Whether this secret of this key has been verified and is remembered. */
  remembers(known: ApiKey | undefined, secret: string): boolean
}

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
    // Not the number of bytes that `write` returns: of a longer text it may be that of a part.
    const isFramed = secret.length <= secretLengthMax && Buffer.byteLength(secret) === secret.length
    presented.write(secret, 0, secretLengthMax)
    presented[secretLengthMax] = isFramed ? secret.length : unframed
    return isFramed
  }

  function remembers(known: ApiKey = unknownKey, secret: string): boolean {
    const isFramed = frame(secret)
    const right = rightSecrets.get(known) ?? noSecret
    return timingSafeEqual(presented, right) && isFramed && right !== noSecret
  }

  function verify(known: ApiKey = unknownKey, secret: string): boolean {
    if (remembers(known, secret)) return true
    const isValid = verifySecret(pepper, secret, known.secretHash)
    // `presented` still holds this secret.
    if (isValid && presented[secretLengthMax] !== unframed) {
      rightSecrets.set(known, Buffer.alloc(frameBytes, presented))
    }
    return isValid
  }

  return Object.assign(verify, { remembers })
}
