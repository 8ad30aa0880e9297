/**
 * Browsers in which an account was signed in to before. Strangers cannot use up the mails that such a browser may ask for. The
 * cookie has a random name of the browser and a seal over it and the address, so it does not show the address.
 */
import type { RandomBytes } from '../../shared/api-keys/credentials.ts'
import { isSame, sealOf } from '../http/sealed.ts'

export const knownMsMax = 180 * 86_400_000

const nameBytes = 16
const knownPattern = /^([\w-]{22})\.([\w-]{43})$/
const purpose = 'known-browser'

/** The cookie for a browser in which this address was verified. */
export function knownBrowser(portalKey: string, email: string, randomBytes: RandomBytes): string {
  const name = Buffer.from(randomBytes(nameBytes)).toString('base64url')
  return `${name}.${sealOf(portalKey, purpose, `${name} ${email}`)}`
}

/** The name of the browser, if the cookie is one for this address. */
export function knownAs(portalKey: string, email: string, cookie: string | undefined): string | undefined {
  const [, name, seal] = knownPattern.exec(cookie ?? '') ?? []
  if (name === undefined || seal === undefined) return undefined
  return isSame(seal, sealOf(portalKey, purpose, `${name} ${email}`)) ? name : undefined
}
