/**
 * How many sign-in mails are sent: limited per network, per address, and per address from one network. So nobody can flood a
 * mailbox or guess codes. A browser in which the account was signed in to before has mails of its own, so no stranger can
 * keep the person from signing in with it. Its cookie is a seal over the address, so it does not show that.
 */
import type { FastifyRequest } from 'fastify'
import { addressBucket } from '../../runtime/http/addresses.ts'
import { dayMs } from '../../runtime/runtime.ts'
import type { Portal } from '../app.ts'
import { isSame, sealOf } from '../http/cookies.ts'
import { countWithin } from '../http/pages.ts'

const hourMs = 3_600_000
export const mailLimits = {
  network: {
    max: 30,
    windowMs: hourMs,
    reason: 'Too many sign-in mails were asked for from your network. Try again in an hour.',
  },
  address: { max: 20, windowMs: hourMs },
  addressFromNetwork: { max: 5, windowMs: hourMs },
  knownBrowser: { max: 5, windowMs: hourMs / 4 },
} as const

/**
 * Counts a mail to this address, and resolves with whether it is sent. If the address has had its mails, the answer must not show it. Throws
 * if the network has had its mails. The store gets no address in clear.
 */
export async function countMail(
  { store, cookies, options: { portalKey } }: Portal,
  request: FastifyRequest,
  email: string,
): Promise<boolean> {
  const keyOf = (text: string) => `mails:${sealOf(portalKey, 'limit', text)}`
  const isWithin = async (text: string, { max, windowMs }: { max: number; windowMs: number }) =>
    (await store.count(keyOf(text), windowMs)) <= max
  const isKnown = isSame(cookies.known.read(request) ?? '', knownBrowser(portalKey, email))
  // First: strangers in the network of the person, too, could use up its mails. Beyond it, the browser is like any other.
  if (isKnown && (await isWithin(`known ${email}`, mailLimits.knownBrowser))) return true
  const network = addressBucket(request.ip)
  await countWithin(store, keyOf(`network ${network}`), mailLimits.network)
  // What one network asks for too often does not count for the address: others could not sign in.
  const isWithinPair = await isWithin(`pair ${network} ${email}`, mailLimits.addressFromNetwork)
  return isWithinPair && isWithin(`address ${email}`, mailLimits.address)
}

export const knownMsMax = 180 * dayMs

/** The cookie for a browser in which this address was verified. */
export function knownBrowser(portalKey: string, email: string): string {
  return sealOf(portalKey, 'known-browser', email)
}
