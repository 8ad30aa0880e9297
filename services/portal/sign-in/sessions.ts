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
import type { RandomBytes } from '../../api-keys/credentials.ts'
import type { Account, Accounts } from '../ports.ts'
import type { PortalStore } from '../store/port.ts'

export interface SessionsDependencies {
  store: PortalStore
  accounts: Pick<Accounts, 'find'>
  now: () => number
  randomBytes: RandomBytes
}

export interface Sessions {
  /** Begins a session and resolves with its token. */
  begin(account: Account): Promise<string>
  /** The account of the session, and keeps the session alive. `undefined` if it has ended. */
  accountOf(token: string): Promise<Account | undefined>
  end(token: string): Promise<void>
}

const dayMs = 86_400_000
export const idleMsMax = 7 * dayMs
export const sessionMsMax = 30 * dayMs
// A session is written again at most this often. So its end is right to this long.
const touchMs = 300_000

const tokenBytes = 32
const tokenPattern = /^[\w-]{43}$/

const sessionSchema = z.object({
  account_id: z.string(),
  account_state: z.string(),
  began_at: z.number(),
  touched_at: z.number(),
})

type Session = z.output<typeof sessionSchema>

/** The sessions in this store. */
export function createSessions({ store, accounts, now, randomBytes }: SessionsDependencies): Sessions {
  async function keepAlive(key: string, session: Session): Promise<void> {
    if (now() - session.touched_at < touchMs) return
    const touched = { ...session, touched_at: now() }
    await store.replace(key, JSON.stringify(touched), timeLeft(session, now()))
  }

  return {
    async begin(account) {
      const token = Buffer.from(randomBytes(tokenBytes)).toString('base64url')
      const session = {
        account_id: account.account_id,
        account_state: stateOf(account),
        began_at: now(),
        touched_at: now(),
      }
      await store.put(keyOf(token), JSON.stringify(session), timeLeft(session, now()))
      return token
    },

    async accountOf(token) {
      if (!tokenPattern.test(token)) return undefined
      const key = keyOf(token)
      const session = sessionIn(await store.get(key))
      if (session === undefined || timeLeft(session, now()) <= 0) return undefined
      const account = await accounts.find(session.account_id)
      if (account === undefined || stateOf(account) !== session.account_state) {
        await store.remove(key)
        return undefined
      }
      await keepAlive(key, session)
      return account
    },

    async end(token) {
      if (tokenPattern.test(token)) await store.remove(keyOf(token))
    },
  }
}

function keyOf(token: string): string {
  return `session:${hash('sha256', token, 'hex')}`
}

function sessionIn(value: string | undefined): Session | undefined {
  return value === undefined ? undefined : sessionSchema.safeParse(JSON.parse(value)).data
}

function timeLeft({ began_at }: Pick<Session, 'began_at'>, now: number): number {
  return Math.min(idleMsMax, began_at + sessionMsMax - now)
}

/** What changes when the sessions of an account end. An account that was deleted and made again began anew. */
function stateOf({ created_at, sessions_valid_from }: Account): string {
  return `${created_at} ${sessions_valid_from}`
}
