/**
 * API credentials: how a key and its secret are made, hashed, recognised and compared.
 *
 * A secret has 256 random bits, so a keyed hash is enough. A slow hash protects secrets that can be guessed; this one
 * cannot. A slow hash on every request would also make it easy to flood the service.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

/** The source of randomness: that many random bytes, for example `randomBytes` of `node:crypto`. */
export type RandomBytes = (count: number) => Uint8Array

/** Both parts of a credential. The secret is in clear text only here, when it was made or presented. */
export interface Credentials {
  key: string
  secret: string
}

const keyMarker = 'pv_live_'
export const keyPrefixLength = 16
const secretMarker = 'pv_secret_'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const keyDigits = 24
const secretBytes = 32
// 62^43 > 2^256, and 62^6 > 2^32.
const secretDigits = 43
const checksumDigits = 6
const hashHexLength = 64

/** A new API key: `pv_live_` and 24 base-62 digits (142 random bits). */
export function generateApiKey(randomBytes: RandomBytes): string {
  // 62 does not divide 256. Bytes above the last whole multiple are dropped, so that every digit is equally likely.
  const fair = 256 - (256 % base62.length)
  let key = keyMarker
  while (key.length < keyMarker.length + keyDigits) {
    for (const byte of randomBytes(keyDigits)) {
      if (byte < fair && key.length < keyMarker.length + keyDigits) key += base62[byte % base62.length]
    }
  }
  return key
}

/**
 * A new secret: `pv_secret_`, 256 random bits as 43 base-62 digits, and the CRC-32 of these digits as 6 more. A leak scanner
 * finds it by `pv_secret_[0-9A-Za-z]{49}`, and the checksum tells a secret from an example.
 */
export function generateSecret(randomBytes: RandomBytes): string {
  const bits = BigInt(`0x${Buffer.from(randomBytes(secretBytes)).toString('hex')}`)
  const digits = inBase62(bits, secretDigits)
  return `${secretMarker}${digits}${inBase62(BigInt(crc32(digits)), checksumDigits)}`
}

function inBase62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n) digits = base62[Number(rest % 62n)] + digits
  return digits
}

/** The stored form of a secret: HMAC-SHA-256 with the pepper, as 64 lower-case hex digits. */
export function hashSecret(pepper: string, secret: string): string {
  return createHmac('sha256', pepper).update(secret).digest('hex')
}

/**
 * Stands in for the stored hash of a key that does not exist; no secret matches it. It is a constant of the same length
 * as a real one: if it were made for each request, the refusal of an unknown key would take longer.
 */
export const noSecretHash = '0'.repeat(hashHexLength)

/**
 * Whether the secret matches the stored hash. It takes the same time wherever the two differ, and also if there is
 * no stored hash. So the delay of an answer does not show which keys exist.
 */
export function verifySecret(pepper: string, secret: string, storedHash: string): boolean {
  const presented = createHmac('sha256', pepper).update(secret).digest()
  const expected = Buffer.from(storedHash, 'hex')
  // A stored text that is not hex decodes to fewer bytes. The comparison needs equal lengths, so it compares with
  // zeros instead.
  const isComparable = storedHash.length === hashHexLength && expected.length === presented.length
  const isEqual = timingSafeEqual(presented, isComparable ? expected : zeros)
  return isComparable && isEqual && storedHash !== noSecretHash
}

const zeros = Buffer.alloc(hashHexLength / 2)

/**
 * The part of a key that identifies it to people (16 characters). It is safe to log and cannot be used to
 * authenticate.
 */
export function keyPrefix(key: string): string {
  return key.slice(0, keyPrefixLength)
}
