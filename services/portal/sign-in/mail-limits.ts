/**
 * How many sign-in mails are sent: limited per network, per address, and per address from one network. So nobody can flood a
 * mailbox or guess codes. A browser in which the account was signed in to before has mails of its own, so no stranger can
 * keep the person from signing in with it. Its cookie is a seal over the address, so it does not show that.
 */

import { addressBucket } from '../../runtime/http/addresses.ts'
import { dayMs } from '../../runtime/runtime.ts'
import { isSame, sealOf } from '../http/cookies.ts'
import type { PortalStore } from '../store/port.ts'

const hourMs = 3_600_000
export const mailLimits = {
  network: { max: 30, windowMs: hourMs },
  address: { max: 20, windowMs: hourMs },
  addressFromNetwork: { max: 5, windowMs: hourMs },
  knownBrowser: { max: 5, windowMs: hourMs / 4 },
} as const

/**
 * Counts a mail to this address, asked for from this network address. `silent`: the address has had its mails; the answer
 * must not show it. `refused`: the network has had its mails. `isKnown`: the browser is known for the address. The
 * store gets no address in clear.
 */
export async function countMail(
  store: Pick<PortalStore, 'count'>,
  portalKey: string,
  mail: { email: string; networkAddress: string; isKnown: boolean },
): Promise<'allowed' | 'silent' | 'refused'> {
  const { email, isKnown } = mail
  const isOver = async (text: string, { max, windowMs }: { max: number; windowMs: number }) => {
    return (await store.count(`mails:${sealOf(portalKey, 'limit', text)}`, windowMs)) > max
  }
  // First: strangers in the network of the person, too, could use up its mails. Beyond it, the browser is like any other.
  if (isKnown && !(await isOver(`known ${email}`, mailLimits.knownBrowser))) return 'allowed'
  const network = addressBucket(mail.networkAddress)
  if (await isOver(`network ${network}`, mailLimits.network)) return 'refused'
  // What one network asks for too often does not count for the address: others could not sign in.
  if (await isOver(`pair ${network} ${email}`, mailLimits.addressFromNetwork)) return 'silent'
  return (await isOver(`address ${email}`, mailLimits.address)) ? 'silent' : 'allowed'
}

export const knownMsMax = 180 * dayMs

/** The cookie for a browser in which this address was verified. */
export function knownBrowser(portalKey: string, email: string): string {
  return sealOf(portalKey, 'known-browser', email)
}

/** Whether the cookie is that of a browser in which this address was verified. */
export function isKnownBrowser(portalKey: string, email: string, cookie: string | undefined): boolean {
  return cookie !== undefined && isSame(cookie, knownBrowser(portalKey, email))
}
