/**
 * Seeded randomness for the demo platform: the same seed gives the same numbers on every machine.
 *
 * There is one stream per purpose (`randomOf(seed, 'campaign', 7)`), so that an additional draw in one place does not change
 * the numbers of other places. Not for secrets.
 */

/** A part of a stream's name. */
export type Seed = string | number

/** Draws the next number, 0 <= n < 1. */
export type Random = () => number

/** A choice and its weight, relative to the others. */
export type Weighted<T> = readonly [value: T, weight: number]

/** The stream with this name; other names give unrelated streams. */
export function randomOf(...seed: readonly Seed[]): Random {
  const text = seed.join('\u0000')
  let a = hash32(text, 1)
  let b = hash32(text, 2)
  let c = hash32(text, 3)
  let counter = 1
  // Small fast counting generator: 128 bits of state with a 32-bit counter, so that no seed has a short cycle.
  return () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 0x1_0000_0000
  }
}

/** A 32-bit hash (0 to 2^32-1) of text; the salt gives a family of unrelated hashes. */
function hash32(text: string, salt = 0): number {
  let hash = 0x811c9dc5 ^ Math.imul(salt, 0x9e3779b1)
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return scramble32(hash)
}

/** Maps 32-bit integers to 32-bit integers one to one, without visible order. */
export function scramble32(value: number): number {
  let x = value | 0
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
  return (x ^ (x >>> 15)) >>> 0
}

/**
 * An identifier as opaque as a real platform's: `prefix_` and seven characters, different for different numbers
 * (0 to 2^32-1) of one seed and prefix.
 */
export function opaqueId(prefix: string, seed: Seed, number: number): string {
  const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
  const value = scramble32(number ^ hash32(String(seed)))
  const digits = Array.from({ length: 7 }, (_, i) => alphabet.charAt(Math.floor(value / 32 ** (6 - i)) % 32))
  return `${prefix}_${digits.join('')}`
}

/** An integer, both bounds included. */
export function intBetween(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1))
}

/** A number, min <= n < max. */
export function between(random: Random, min: number, max: number): number {
  return min + random() * (max - min)
}

/** True with the given probability. */
export function chance(random: Random, probability: number): boolean {
  return random() < probability
}

/** One item of the list. Throws a `RangeError` if the list is empty. */
export function pick<T>(random: Random, list: readonly T[]): T {
  const value = list[Math.floor(random() * list.length)]
  if (value === undefined) throw new RangeError('cannot pick from an empty list')
  return value
}

/** One of the choices, by weight. Throws a `RangeError` if no weight is above 0. */
export function pickWeighted<T>(random: Random, choices: readonly Weighted<T>[]): T {
  return pickBy(random, choices, ([, weight]) => weight)[0]
}

/** One item of the list, by the weight of each. Throws a `RangeError` if no weight is above 0. */
export function pickBy<T>(random: Random, list: readonly T[], weightOf: (value: T) => number): T {
  let left = random() * list.reduce((sum, value) => sum + weightOf(value), 0)
  for (const value of list) {
    if (left < weightOf(value)) return value
    left -= weightOf(value)
  }
  throw new RangeError('cannot pick if no weight is above 0')
}

/** A number of the log-normal distribution: half are below the median; spread 0 gives the median itself. */
export function logNormal(random: Random, median: number, spread: number): number {
  // Box and Muller; 1 - random() keeps zero out of the logarithm.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return median * Math.exp(spread * normal)
}

/** A Poisson-distributed count with this mean (0 to about 100). */
export function poisson(random: Random, mean: number): number {
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random(); product > limit; product *= random()) count++
  return count
}

/** Some of the list, in its order, at most `count`. */
export function sample<T>(random: Random, list: readonly T[], count: number): T[] {
  let missing = Math.min(count, list.length)
  return list.filter((_, index) => {
    if (random() * (list.length - index) >= missing) return false
    missing--
    return true
  })
}
