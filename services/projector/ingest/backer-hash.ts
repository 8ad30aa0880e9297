/**
 * The keyed hash of a backer id, an unsigned 64-bit integer. It allows backers to be counted without being identified.
 *
 * Tables keep the hash algorithm that they began with, because another one would count every backer again. New tables begin
 * with SipHash-2-4. Older ones use SHA3-256 over key and id, cut to 64 bits. That costs more than all other work for a
 * pledge.
 */
import { createHash, hash } from 'node:crypto'
import type { BackerHash } from '../../tables/identity.ts'
import { createSipHash, type Hash64 } from './siphash.ts'

export interface HashBacker {
  (backerId: string): Hash64
  /** The hash of an id that is `length` bytes of ASCII, without a string of it. */
  ofAscii(bytes: Uint8Array, at: number, length: number): Hash64
}

/** `key`: 64 hex digits. */
export function backerHasher(key: string, algorithm: BackerHash): HashBacker {
  switch (algorithm) {
    case 'siphash-2-4': {
      const sipHash = createSipHash(sipHashKey(key))
      return Object.assign((backerId: string) => sipHash(backerId), { ofAscii: sipHash.ofBytes })
    }
    case 'sha3-256': {
      // SHA-3 is safe with the key as a prefix. It has no length extension, unlike SHA-256.
      const ofText = (backerId: string): Hash64 => {
        const digest = hash('sha3-256', key + backerId, 'buffer')
        return { low: digest.readInt32BE(4), high: digest.readInt32BE(0) }
      }
      const ofAscii = (bytes: Uint8Array, at: number, length: number): Hash64 =>
        ofText(asciiText(bytes, at, length))
      return Object.assign(ofText, { ofAscii })
    }
    default:
      return algorithm satisfies never
  }
}

/** SipHash takes a key of 128 bits. It is derived, so that the configured key itself is used for nothing else. */
function sipHashKey(key: string): Uint8Array {
  return createHash('sha256').update('pledgeview backer hash\0').update(key).digest().subarray(0, 16)
}

/** The text of bytes that are known to be ASCII. */
export function asciiText(bytes: Uint8Array, at: number, length: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1')
}
