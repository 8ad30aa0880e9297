/**
 * Sessions: who is signed in, in the portal's store.
 *
 * - A browser has an opaque random token. The store has only its hash, so a person who reads the store cannot sign in with it.
 * - A session ends seven days after its last use, and 30 days after its beginning.
 * - A session belongs to the state that its account had at its beginning. "Sign out everywhere" and deletion change that
 *   state, so they end every session of the account, on every portal, whatever the clocks say.
 */

import { hash } from 'node:crypto'
import { z } from 'zod'
import { dayMs } from '../../runtime/runtime.ts'
import type { Accounts } from '../account/accounts.ts'
import type { Portal } from '../app.ts'
import { randomText } from '../http/cookies.ts'
import { countWithin } from '../http/pages.ts'
import type { Account } from '../ports.ts'
import { aheadMsMax } from '../store/port.ts'

export type Sessions = ReturnType<typeof createSessions>

const idleMsMax = 7 * dayMs
export const sessionMsMax = 30 * dayMs
// A session is written again at most this often. So its end is right to this long.
const touchMs = 300_000

/** Requests of a session. Each reads the tables, on the public pages too. */
export const requestBound = {
  max: 120,
  windowMs: 60_000,
  reason: 'This browser opened very many pages within a minute. Try again in a minute.',
} as const

const tokenPattern = /^[\w-]{43}$/

const sessionSchema = z.object({
  account_id: z.string(),
  account_state: z.string(),
  began_at: z.number(),
  touched_at: z.number(),
})

/** The sessions in this store. */
export function createSessions(parts: Pick<Portal, 'store' | 'now'> & { accounts: Pick<Accounts, 'find'> }) {
  const { store, accounts, now } = parts
  const keyOf = (token: string) => `session:${hash('sha256', token, 'hex')}`
  const timeLeft = (began_at: number) => Math.min(idleMsMax, began_at + sessionMsMax - now())

  return {
    /** Begins a session and resolves with its token. */
    async begin(account: Account): Promise<string> {
      const token = randomText(32)
      const began_at = now()
      const { account_id } = account
      const session = { account_id, account_state: stateOf(account), began_at, touched_at: began_at }
      await store.put(keyOf(token), JSON.stringify(session), timeLeft(began_at))
      return token
    },

    /** The account of the session, and keeps the session alive. `undefined` if it has ended. Throws if it comes too often. */
    async accountOf(token: string): Promise<Account | undefined> {
      if (!tokenPattern.test(token)) return undefined
      const key = keyOf(token)
      const value = await store.get(key)
      const session = value === undefined ? undefined : sessionSchema.safeParse(JSON.parse(value)).data
      if (session === undefined) return undefined
      // The store's end is by a clock that may have been set since. A session of a leap of a year must not live for a year.
      const isIdle = now() - session.touched_at > idleMsMax + aheadMsMax
      if (timeLeft(session.began_at) <= 0 || session.began_at > now() + aheadMsMax || isIdle) {
        await store.take(key)
        return undefined
      }
      // Counted for each session by itself. A thief with one must not keep the person from ending it in another.
      await countWithin(store, `requests/${key}`, requestBound)
      const account = await accounts.find(session.account_id)
      if (account === undefined || stateOf(account) !== session.account_state) {
        await store.take(key)
        return undefined
      }
      if (Math.abs(now() - session.touched_at) >= touchMs) {
        const touched = JSON.stringify({ ...session, touched_at: now() })
        await store.replace(key, touched, timeLeft(session.began_at))
      }
      return account
    },

    async end(token: string): Promise<void> {
      if (tokenPattern.test(token)) await store.take(keyOf(token))
    },
  }
}

/** What changes when the sessions of an account end. An account that was deleted and made again began anew. */
function stateOf({ created_at, sessions_valid_from }: Account): string {
  return `${created_at} ${sessions_valid_from}`
}
