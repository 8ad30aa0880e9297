/**
 * Seeded randomness for the demo platform: the same seed gives the same numbers on every machine.
 *
 * Streams are made per purpose (`randomOf(seed, 'campaign', 7)`), so that drawing once more in one place changes
 * nothing anywhere else. Not for secrets.
 */

/** What a stream of randomness is named by. */
export type Seed = string | number

/** Draws the next number, 0 <= n < 1. */
export type Random = () => number

/** A choice and how often it is made, relative to the others'. */
export type Weighted<T> = readonly [value: T, weight: number]

/** The stream that belongs to these parts; other parts give an unrelated one. */
export function randomOf(...seed: readonly Seed[]): Random {
  const text = seed.join('\u0000')
  let a = hash32(text, 1)
  let b = hash32(text, 2)
  let c = hash32(text, 3)
  let counter = 1
  // Small fast counting generator: 128 bits of state, of which 32 count, so that no seed has a short cycle.
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
export function hash32(text: string, salt = 0): number {
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

/** One of the list. Throws a `RangeError` when it is empty. */
export function pick<T>(random: Random, list: readonly T[]): T {
  const value = list[Math.floor(random() * list.length)]
  if (value === undefined) throw new RangeError('cannot pick from an empty list')
  return value
}

/** One of the choices, by weight. Throws a `RangeError` when no weight is above 0. */
export function pickWeighted<T>(random: Random, choices: readonly Weighted<T>[]): T {
  return atShare(random(), choices)
}

/** The choice at a share (0 <= share < 1) of all weight, in the order of the list. */
export function atShare<T>(share: number, choices: readonly Weighted<T>[]): T {
  let left = share * choices.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [value, weight] of choices) {
    if (left < weight) return value
    left -= weight
  }
  throw new RangeError('cannot pick where no weight is above 0')
}

/** A number of the log-normal distribution: half are below the median; spread 0 gives the median itself. */
export function logNormal(random: Random, median: number, spread: number): number {
  // Box and Muller; 1 - random() keeps zero out of the logarithm.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return median * Math.exp(spread * normal)
}

/** How many of independent rare things happen when `mean` are expected (0 to about 100): Poisson. */
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
