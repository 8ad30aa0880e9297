/**
 * Forms that must not act twice: a double click, a reload of the answer, a page that was gone back to. Each such form carries
 * a random token, and acts once within a day, in whatever portal process. A second request that arrives while the first one still
 * runs in this process gets the same result: after a double click the browser shows only the second answer, and the secret must be in
 * it.
 *
 * The token is no protection against other sites: the CSRF token is. What a form costs is bounded before its token is looked at, so
 * made-up tokens fill no store.
 */
import { randomText } from '../http/cookies.ts'
import { PageError } from '../http/pages.ts'
import type { PortalStore } from '../store/port.ts'

/** Runs the action if this token of the account was not used before; otherwise `undefined`. What it throws, every request that waited gets. */
export type Once = <T>(
  accountId: string,
  token: string,
  action: () => Promise<T>,
) => Promise<{ value: T } | undefined>

const rememberedMs = 24 * 3_600_000
const tokenPattern = /^[\w-]{22}$/

/** A token for one form. */
export function newFormToken(): string {
  return randomText(16)
}

export function createOnce(store: Pick<PortalStore, 'claim'>): Once {
  const running = new Map<string, Promise<{ value: unknown } | undefined>>()
  return async <T>(accountId: string, token: string, action: () => Promise<T>) => {
    if (!tokenPattern.test(token)) throw new PageError(400, 'This form is not whole. Open the page again.')
    const id = `form/${accountId}/${token}`
    const first = running.get(id) as Promise<{ value: T } | undefined> | undefined
    if (first) return first
    const result = store
      .claim(id, '', rememberedMs)
      .then(async isFirst => (isFirst ? { value: await action() } : undefined))
      .finally(() => running.delete(id))
    running.set(id, result)
    return result
  }
}
