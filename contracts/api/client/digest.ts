/**
 * The digest of a copy, to compare it with `X-Data-Digest`.
 *
 * SHA-256 is computed here: that of the platform (Web Crypto) is missing on pages without HTTPS, and waits for each of the short texts.
 */

/** `copy`: `updated_at` by id. */
export function digestOf(copy: ReadonlyMap<string, string>): string {
  let sum = 0n
  for (const [id, updatedAt] of copy) sum += numberOf(`${id}|${updatedAt}`)
  return `${copy.size}-${BigInt.asUintN(64, sum).toString(16).padStart(16, '0')}`
}

/** The first eight bytes of the SHA-256 of the text (FIPS 180-4). */
export function numberOf(text: string): bigint {
  const words = wordsOf(new TextEncoder().encode(text))
  const state = Int32Array.from(initial)
  for (let from = 0; from < words.length; from += 16) addBlock(state, words.subarray(from, from + 16))
  const [high = 0, low = 0] = Uint32Array.from(state)
  return (BigInt(high) << 32n) | BigInt(low)
}

/** The bytes, a one, zeros and the length in bits: blocks of 16 words. */
function wordsOf(bytes: Uint8Array): Int32Array {
  const padded = new DataView(new ArrayBuffer(64 * (((bytes.length + 8) >> 6) + 1)))
  new Uint8Array(padded.buffer).set(bytes)
  padded.setUint8(bytes.length, 0x80)
  padded.setUint32(padded.byteLength - 4, 8 * bytes.length)
  return Int32Array.from({ length: padded.byteLength / 4 }, (_, at) => padded.getInt32(4 * at))
}

const primes = Array.from({ length: 310 }, (_, n) => n + 2).filter(n => {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false
  return true
})
const fraction = (value: number) => ((value % 1) * 2 ** 32) | 0
const initial = Int32Array.from(primes.slice(0, 8), prime => fraction(Math.sqrt(prime)))
const constants = Int32Array.from(primes.slice(0, 64), prime => fraction(Math.cbrt(prime)))
const schedule = new Int32Array(64)

const turned = (word: number, bits: number) => (word >>> bits) | (word << (32 - bits))

function addBlock(state: Int32Array, block: Int32Array): void {
  schedule.set(block)
  for (let at = 16; at < 64; at++) {
    const [early = 0, late = 0] = [schedule[at - 15], schedule[at - 2]]
    const first = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)
    const second = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10)
    schedule[at] = (schedule[at - 16] ?? 0) + first + (schedule[at - 7] ?? 0) + second
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let at = 0; at < 64; at++) {
    const choice = (e & f) ^ (~e & g)
    const first =
      h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + choice + (constants[at] ?? 0) + (schedule[at] ?? 0)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + majority
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  for (const [at, word] of [a, b, c, d, e, f, g, h].entries()) state[at] = (state[at] ?? 0) + word
}
