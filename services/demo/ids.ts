/** Identifiers that look as opaque as a real platform's. */
import { hash32, type Seed, scramble32 } from './random.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** `prefix_` and seven characters; different for different numbers (0 to 2^32-1) of one seed and prefix. */
export function opaqueId(prefix: string, seed: Seed, number: number): string {
  let rest = scramble32(number ^ hash32(String(seed)))
  let text = ''
  for (let i = 0; i < 7; i++) {
    text = alphabet.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return `${prefix}_${text}`
}
