/**
 * The portal's cookies. All of them are HttpOnly and SameSite=Lax. Behind https they are Secure and their names begin with
 * `__Host-`, so that no other host can set or see them.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export type Cookies = ReturnType<typeof createCookies>

/** The cookies of a portal at this address. */
export function createCookies(portalUrl: string) {
  const secure = new URL(portalUrl).protocol === 'https:'
  const prefix = secure ? '__Host-' : ''
  return {
    /** The token of the session. */
    session: cookie(`${prefix}pledgeview`, secure),
    /** The sign-in that this browser began. */
    signIn: cookie(`${prefix}pledgeview-sign-in`, secure),
    /** Says that a person signed in to an account with this browser before. It is not enough to sign in. */
    known: cookie(`${prefix}pledgeview-known`, secure),
    /** The sign-in through the provider that this browser began. */
    provider: cookie(`${prefix}pledgeview-provider`, secure),
  }
}

function cookie(name: string, secure: boolean) {
  const attributes = { path: '/', httpOnly: true, sameSite: 'lax', secure } as const
  return {
    name,
    read: (request: FastifyRequest) => request.cookies[name],
    set(reply: FastifyReply, value: string, msMax: number): void {
      reply.setCookie(name, value, { ...attributes, maxAge: Math.floor(msMax / 1000) })
    },
    clear: (reply: FastifyReply) => void reply.clearCookie(name, attributes),
  }
}

/** So many random bytes as text for a cookie, a link or a form. Nobody can guess 16 of them. */
export function randomText(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/* Values that the portal gives to a browser and believes when they come back, because they carry a keyed hash. Pure. */

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
