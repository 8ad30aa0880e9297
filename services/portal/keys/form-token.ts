/**
 * Forms that must not act twice: a double click, a reload of the answer, a page that was gone back to. Each such form carries
 * a token that is good for one use in any portal process. A second request that arrives while the first one still runs in this
 * process gets the same result: after a double click the browser shows only the second answer, and the secret must be in it.
 *
 * The token is no protection against other sites (the CSRF token is). It is signed for its account, so a made-up one is refused before
 * anything is stored.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { RandomBytes } from '../../api-keys/credentials.ts'

/** Remembers, for all portal processes, that a token was used. */
export interface OnceStore {
  /** True for the first caller with this id within the time, false for every other. */
  claim(id: string, ttlMs: number): Promise<boolean>
}

export type OnceResult<T> = { outcome: 'done'; value: T } | { outcome: 'used' } | { outcome: 'too old' }

export interface FormTokens {
  /** A token for a form of this account. */
  make(accountId: string): string
  /** Runs the action if the token was not used before. What the action throws, every request that waited for it gets. */
  once<T>(accountId: string, token: string, action: () => Promise<T>): Promise<OnceResult<T>>
}

/** A form that lies open longer has to be opened again. So a used token need not be remembered for ever. */
export const formMsMax = 24 * 3_600_000
// Clocks of two portal processes may differ.
const clockMsMax = 10 * 60_000
const tokenForm = /^(([0-9a-z]{1,11})\.[A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

export function createFormTokens(dependencies: {
  store: OnceStore
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
  now: () => number
  randomBytes: RandomBytes
}): FormTokens {
  const { store, portalKey, now, randomBytes } = dependencies
  const running = new Map<string, Promise<OnceResult<unknown>>>()
  return {
    make(accountId) {
      const body = `${now().toString(36)}.${Buffer.from(randomBytes(16)).toString('base64url')}`
      return `${body}.${signatureOf(portalKey, accountId, body)}`
    },
    async once<T>(accountId: string, token: string, action: () => Promise<T>): Promise<OnceResult<T>> {
      const madeAt = timeOf(portalKey, accountId, token)
      const age = now() - madeAt
      // A text that is no token has no age: NaN compares false.
      if (!(age > -clockMsMax && age < formMsMax)) return { outcome: 'too old' }
      const id = `form/${accountId}/${token}`
      const first = running.get(id) as Promise<OnceResult<T>> | undefined
      if (first) return first
      const result = runOnce(store, id, action).finally(() => running.delete(id))
      running.set(id, result)
      return result
    },
  }
}

/** When the token was made. NaN: it is none, or not of this account. */
function timeOf(portalKey: string, accountId: string, token: string): number {
  const [, body = '', time = '', signature = ''] = tokenForm.exec(token) ?? []
  const expected = Buffer.from(signatureOf(portalKey, accountId, body))
  const given = Buffer.from(signature)
  const isSigned = given.length === expected.length && timingSafeEqual(given, expected)
  return isSigned ? Number.parseInt(time, 36) : Number.NaN
}

function signatureOf(portalKey: string, accountId: string, body: string): string {
  return createHmac('sha256', portalKey).update(`form ${accountId} ${body}`).digest('base64url')
}

async function runOnce<T>(store: OnceStore, id: string, action: () => Promise<T>): Promise<OnceResult<T>> {
  if (!(await store.claim(id, formMsMax + 2 * clockMsMax))) return { outcome: 'used' }
  return { outcome: 'done', value: await action() }
}
