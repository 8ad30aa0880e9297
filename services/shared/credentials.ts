/**
 * API credentials: how a key and its secret are made, hashed, recognised and compared.
 *
 * A secret has 256 random bits, so a keyed hash is enough: there is nothing to guess that a slow hash would protect,
 * and a slow hash on every request would be a way to flood the service.
 */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/** The source of randomness: that many random bytes, for example `randomBytes` of `node:crypto`. */
export type RandomBytes = (count: number) => Uint8Array

/** Both parts of a credential. The secret exists in clear text only here, where it was made or presented. */
export interface Credentials {
  key: string
  secret: string
}

export const keyMarker = 'pv_live_'
export const keyPrefixLength = 16

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const keyDigits = 24
const secretBytes = 32
const hashHexLength = 64

/** A new API key: `pv_live_` and 24 base-62 digits (142 random bits). */
export function generateApiKey(randomBytes: RandomBytes): string {
  // 62 does not divide 256: bytes above the last whole multiple are thrown away, so that every digit is equally likely.
  const fair = 256 - (256 % base62.length)
  let key = keyMarker
  while (key.length < keyMarker.length + keyDigits) {
    for (const byte of randomBytes(keyDigits)) {
      if (byte < fair && key.length < keyMarker.length + keyDigits) key += base62[byte % base62.length]
    }
  }
  return key
}

/** A new secret: 256 random bits as 43 base64url characters, none of which is a colon. */
export function generateSecret(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(secretBytes)).toString('base64url')
}

/** Tells a configured secret from another, and nothing more of it. */
export function fingerprintOf(configured: string): string {
  return hash('sha256', `pledgeview ${configured}`, 'hex').slice(0, 16)
}

/** What is stored of a secret: HMAC-SHA-256 under the pepper, as 64 lower-case hex digits. */
export function hashSecret(pepper: string, secret: string): string {
  return createHmac('sha256', pepper).update(secret).digest('hex')
}

/**
 * Whether the secret is the one behind the stored hash. Takes the same time wherever the two differ, and for a stored
 * hash that is `undefined` (no such key), so that the answer's delay tells nothing about which keys exist.
 */
export function verifySecret(pepper: string, secret: string, storedHash: string | undefined): boolean {
  const presented = createHmac('sha256', pepper).update(secret).digest()
  const isStored = storedHash !== undefined && storedHash.length === hashHexLength
  const expected = Buffer.from(isStored ? storedHash : '0'.repeat(hashHexLength), 'hex')
  // A stored text that is not hex decodes short; comparing needs equal lengths, so it is compared with zeros instead.
  const isComparable = expected.length === presented.length
  const isEqual = timingSafeEqual(presented, isComparable ? expected : Buffer.alloc(presented.length))
  return isStored && isComparable && isEqual
}

/** The part of a key that identifies it to people (16 characters); safe to log, useless to authenticate with. */
export function keyPrefix(key: string): string {
  return key.slice(0, keyPrefixLength)
}
