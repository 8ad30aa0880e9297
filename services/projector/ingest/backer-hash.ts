/**
 * The keyed hash of a backer id, an unsigned 64-bit integer: SipHash-2-4. It allows backers to be counted without being identified.
 * Another hash would count every backer of the tables again.
 */
import { createHash } from 'node:crypto'
import { createSipHash, type Hash64 } from './siphash.ts'

export interface HashBacker {
  (backerId: string): Hash64
  /** The hash of an id that is `length` bytes of ASCII, without a string of it. */
  ofAscii(bytes: Uint8Array, at: number, length: number): Hash64
}

/** `key`: 64 hex digits. */
export function backerHasher(key: string): HashBacker {
  const sipHash = createSipHash(sipHashKey(key))
  return Object.assign((backerId: string) => sipHash(backerId), { ofAscii: sipHash.ofBytes })
}

/** SipHash takes a key of 128 bits. It is derived, so that the configured key itself is used for nothing else. */
function sipHashKey(key: string): Uint8Array {
  return createHash('sha256').update('pledgeview backer hash\0').update(key).digest().subarray(0, 16)
}

/** The text of bytes that are known to be ASCII. */
export function asciiText(bytes: Uint8Array, at: number, length: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('latin1')
}
