/**
 * Seeded randomness: the same seed gives the same numbers on every machine.
 *
 * There is one stream per purpose (`randomOf(seed, 'campaign', 7)`), so that an additional draw in one place does not change
 * the numbers of other places.
 */

/** Draws the next number, 0 <= n < 1. */
export type Random = () => number

/** The stream with this name; other names give unrelated streams. */
export function randomOf(...name: readonly (string | number)[]): Random {
  const text = name.join('\u0000')
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
function hash32(text: string, salt: number): number {
  let hash = 0x811c9dc5 ^ Math.imul(salt, 0x9e3779b1)
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad)
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** An integer, both bounds included. */
export function intBetween(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1))
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

/** One of the choices, by weight, relative to the others. Throws a `RangeError` if no weight is above 0. */
export function pickWeighted<T>(random: Random, choices: readonly (readonly [T, number])[]): T {
  let left = random() * choices.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [value, weight] of choices) {
    if (left < weight) return value
    left -= weight
  }
  throw new RangeError('cannot pick if no weight is above 0')
}
