/**
 * The keyed hash of a backer id, an unsigned 64-bit integer: SipHash-2-4. It allows backers to be counted without being identified.
 * Another hash would count every backer of the tables again.
 */
import { createHash } from 'node:crypto'
import { writeShortAscii } from '../../tables/clickhouse/byte-writer.ts'

export interface HashBacker {
  (backerId: string): Hash64
  /** The hash of an id that is `length` bytes of UTF-8, without a string of it. */
  ofBytes(bytes: Uint8Array, at: number, length: number): Hash64
}

/** `key`: 64 hex digits. */
export function backerHasher(key: string): HashBacker {
  // SipHash takes a key of 128 bits. It is derived, so that the configured key itself is used for nothing else.
  const derived = createHash('sha256').update('pledgeview backer hash\0').update(key).digest()
  return createSipHash(derived.subarray(0, 16))
}

/*
 * SipHash-2-4: a keyed 64-bit hash for short inputs. Without the key it is not possible to tell which input a hash belongs
 * to.
 *
 * It is written here because every pledge needs a hash. One call of `node:crypto` costs about ten times as much, which is as
 * much as reading and decoding the pledge.
 *
 * Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF" (2012). 64-bit words are pairs of 32-bit halves.
 */

/** 64 bits as two signed 32-bit halves: a bigint for each pledge would cost as much as the hash. */
export interface Hash64 {
  low: number
  high: number
}

const scratchBytes = 256
const utf8BytesPerUnitMax = 3

/** `key`: 16 bytes. The returned function reuses one buffer, so only one caller at a time may call it. */
export function createSipHash(key: Uint8Array): HashBacker {
  const words = new DataView(key.buffer, key.byteOffset, key.byteLength)
  const [k0l, k0h] = [words.getInt32(0, true), words.getInt32(4, true)]
  const [k1l, k1h] = [words.getInt32(8, true), words.getInt32(12, true)]
  let input = Buffer.alloc(scratchBytes)

  function ofText(text: string): Hash64 {
    if (text.length * utf8BytesPerUnitMax > input.length)
      input = Buffer.alloc(text.length * utf8BytesPerUnitMax)
    return ofBytes(input, 0, writeShortAscii(text, input, 0) ? text.length : input.write(text))
  }

  function ofBytes(bytes: Uint8Array, start: number, length: number): Hash64 {
    let v0l = k0l ^ 0x70736575
    let v0h = k0h ^ 0x736f6d65
    let v1l = k1l ^ 0x6e646f6d
    let v1h = k1h ^ 0x646f7261
    let v2l = k0l ^ 0x6e657261
    let v2h = k0h ^ 0x6c796765
    let v3l = k1l ^ 0x79746573
    let v3h = k1h ^ 0x74656462

    // First every whole word, then the rest with the length in the last byte, then the finish. Two rounds a word, four at the end.
    const blocks = (length >> 3) + 1
    for (let block = 0; block <= blocks; block++) {
      const isFinish = block === blocks
      const at = start + block * 8
      let ml = 0
      let mh = 0
      if (block < blocks - 1) {
        ml = wordAt(bytes, at)
        mh = wordAt(bytes, at + 4)
      } else if (!isFinish) {
        const left = length - block * 8
        ml = partAt(bytes, at, Math.min(4, left))
        mh = partAt(bytes, at + 4, left - 4) | (length << 24)
      }
      v3l ^= ml
      v3h ^= mh
      if (isFinish) v2l ^= 0xff
      for (let round = isFinish ? 4 : 2; round > 0; round--) {
        let low = (v0l + v1l) | 0
        v0h = (v0h + v1h + carryOf(v0l, v1l, low)) | 0
        v0l = low
        let rotated = (v1l << 13) | (v1h >>> 19)
        v1h = ((v1h << 13) | (v1l >>> 19)) ^ v0h
        v1l = rotated ^ v0l
        // A rotation by 32 bits. Swapping by an array would make the whole hash take 1.6 times as long.
        rotated = v0l
        v0l = v0h
        v0h = rotated

        low = (v2l + v3l) | 0
        v2h = (v2h + v3h + carryOf(v2l, v3l, low)) | 0
        v2l = low
        rotated = (v3l << 16) | (v3h >>> 16)
        v3h = ((v3h << 16) | (v3l >>> 16)) ^ v2h
        v3l = rotated ^ v2l

        low = (v0l + v3l) | 0
        v0h = (v0h + v3h + carryOf(v0l, v3l, low)) | 0
        v0l = low
        rotated = (v3l << 21) | (v3h >>> 11)
        v3h = ((v3h << 21) | (v3l >>> 11)) ^ v0h
        v3l = rotated ^ v0l

        low = (v2l + v1l) | 0
        v2h = (v2h + v1h + carryOf(v2l, v1l, low)) | 0
        v2l = low
        rotated = (v1l << 17) | (v1h >>> 15)
        v1h = ((v1h << 17) | (v1l >>> 15)) ^ v2h
        v1l = rotated ^ v2l
        rotated = v2l
        v2l = v2h
        v2h = rotated
      }
      v0l ^= ml
      v0h ^= mh
    }
    return { low: v0l ^ v1l ^ v2l ^ v3l, high: v0h ^ v1h ^ v2h ^ v3h }
  }

  return Object.assign(ofText, { ofBytes })
}

/** The carry of the sum of two unsigned 32-bit integers: 1 if `sum`, its low 32 bits, has wrapped around. */
function carryOf(a: number, b: number, sum: number): number {
  return ((a & b) | ((a | b) & ~sum)) >>> 31
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  )
}

/** The first `count` bytes of a word. The rest of the word is zero. */
function partAt(bytes: Uint8Array, at: number, count: number): number {
  let word = 0
  for (let i = 0; i < count; i++) word |= (bytes[at + i] as number) << (8 * i)
  return word
}
