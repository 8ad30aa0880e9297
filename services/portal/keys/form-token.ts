/**
 * Forms that must not act twice: a double click, a reload of the answer, a page that was gone back to. Each such form carries
 * a random token, and acts once within a day, in whatever portal process. A double click is sent once, where scripts run
 * (static/portal.js). Elsewhere the browser may show only the second answer: the secret is lost, and the answer says what to do.
 *
 * The token is no protection against other sites: the check of the origin is. What a form costs is bounded before its token is looked
 * at, so made-up tokens fill no store.
 */
import { randomText } from '../http/cookies.ts'
import { PageError } from '../http/pages.ts'
import type { PortalStore } from '../store/port.ts'

const rememberedMs = 24 * 3_600_000
const tokenPattern = /^[\w-]{22}$/

/** A token for one form. */
export function newFormToken(): string {
  return randomText(16)
}

/** Whether this token of the account was not used before. From now on it is. */
export function useFormToken(store: Pick<PortalStore, 'claim'>, accountId: string, token: string) {
  if (!tokenPattern.test(token)) throw new PageError(400, 'This form is not whole. Open the page again.')
  return store.claim(`form/${accountId}/${token}`, '', rememberedMs)
}
