/** Values that the portal gives to a browser and believes when they come back, because they carry a keyed hash. Pure. */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** The seal of a text. Seals of one purpose are of no use for another. */
export function sealOf(portalKey: string, purpose: string, text: string): string {
  return createHmac('sha256', portalKey).update(`${purpose} ${text}`).digest('base64url')
}

/** Compares in a time that tells nothing. `given` may be any text. */
export function isSame(given: string, expected: string): boolean {
  // Bytes are compared, not letters: a letter can have several bytes.
  const [givenBytes, expectedBytes] = [Buffer.from(given), Buffer.from(expected)]
  return givenBytes.length === expectedBytes.length && timingSafeEqual(givenBytes, expectedBytes)
}
