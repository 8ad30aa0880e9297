/**
 * Sign-ins under way: a link and a code that were mailed to an address. Both are good for 15 minutes and for one use
 * together: whichever is used first ends the other. The store has only their hashes.
 *
 * The code is short, so it works only in the browser that asked for it, and only a few tries are allowed: for a code, and for
 * all codes of an address together. The link cannot be guessed, so it works whatever was tried.
 */
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Accounts } from '../account/accounts.ts'
import { isSame, randomText, sealOf } from '../http/cookies.ts'
import { aheadMsMax, type PortalStore } from '../store/port.ts'

/** What is known of a sign-in: the address, and where the person wanted to go. */
export interface SignIn {
  email: string
  next: string | undefined
}

export type Attempts = ReturnType<typeof createAttempts>

export const attemptMsMax = 15 * 60_000
export const codeTriesMax = 5
/** Tries of codes of one address. Beyond it only its links work, until the hour is over. */
export const addressTries = { max: 50, windowMs: 3_600_000 } as const
const codeDigits = 8
const idPattern = /^[\w-]{22}$/
const linkPattern = /^([\w-]{22})\.([\w-]{43})$/

const attemptSchema = z.object({
  email: z.string(),
  next: z.string().optional(),
  code_hash: z.string(),
  link_hash: z.string(),
  began_at: z.number().optional(),
})

type Attempt = z.output<typeof attemptSchema>

/** The attempts in this store. */
export function createAttempts(
  store: PortalStore,
  accounts: Pick<Accounts, 'ofVerifiedEmail'>,
  portalKey: string,
  now: () => number,
) {
  const hashOf = (kind: 'attempt' | 'code' | 'link' | 'address', text: string) =>
    sealOf(portalKey, `sign-in ${kind}`, text)
  const keyOf = (id: string) => `sign-in:${hashOf('attempt', id)}`

  /**
   * The store's end of an attempt is by a clock that may have been set since. One that began ahead is removed: it must not be good again
   * when the clock gets there. One without a beginning is of an earlier version.
   */
  async function find(id = ''): Promise<Attempt | undefined> {
    const value = idPattern.test(id) ? await store.get(keyOf(id)) : undefined
    if (value === undefined) return undefined
    const attempt = attemptSchema.safeParse(JSON.parse(value)).data
    const age = now() - (attempt?.began_at ?? now())
    if (attempt && age >= -aheadMsMax && age < attemptMsMax + aheadMsMax) return attempt
    await store.take(keyOf(id))
    return undefined
  }

  /** The attempt that a link belongs to. Does not spend it. */
  async function ofLink(link: string): Promise<Attempt | undefined> {
    const [, id, token = ''] = linkPattern.exec(link) ?? []
    const attempt = await find(id)
    return attempt && isSame(attempt.link_hash, hashOf('link', token)) ? attempt : undefined
  }

  /** Of several that spend the same attempt at once, one gets it. */
  async function spend(id: string, { email, next }: Attempt): Promise<SignIn | undefined> {
    // First the account. If it cannot be read, this throws, and the link and the code stay good.
    await accounts.ofVerifiedEmail(email)
    return (await store.take(keyOf(id))) === undefined ? undefined : { email, next }
  }

  return {
    /** The address of the sign-in that a link belongs to. */
    emailOfLink: async (link: string) => (await ofLink(link))?.email,

    /** The address of the sign-in that a browser began. */
    emailOf: async (id: string | undefined) => (await find(id))?.email,

    /**
     * `id` is for the browser's cookie, `code` and `link` are for the mail. If no mail is sent, nothing matches the attempt: it
     * only answers like any other. Otherwise its code could be guessed without a limit.
     */
    async begin({ email, next }: SignIn, { isMailed }: { isMailed: boolean }) {
      const [id, token] = [randomText(16), randomText(32)]
      const code = String(randomInt(10 ** codeDigits)).padStart(codeDigits, '0')
      const attempt = {
        email,
        next,
        code_hash: isMailed ? hashOf('code', `${id} ${code}`) : '',
        link_hash: isMailed ? hashOf('link', token) : '',
        began_at: now(),
      }
      await store.put(keyOf(id), JSON.stringify(attempt), attemptMsMax)
      return { id, code, link: `${id}.${token}` }
    },

    /** Spends the attempt with the code. */
    async useCode(id: string | undefined, code: string): Promise<SignIn | 'wrong' | 'over'> {
      const attempt = await find(id)
      if (id === undefined || !attempt) return 'over'
      // Counted before the comparison, so tries at once count too.
      const tries = await store.count(`sign-in-tries:${hashOf('attempt', id)}`, attemptMsMax)
      if (tries > codeTriesMax) return 'over'
      const isRight = isSame(attempt.code_hash, hashOf('code', `${id} ${code}`))
      if ((await mayTry(attempt)) && isRight) return (await spend(id, attempt)) ?? 'over'
      // The attempt stays for its link: nobody else can end it with wrong codes.
      return tries < codeTriesMax ? 'wrong' : 'over'
    },

    /** Spends the attempt with the link. */
    async useLink(link: string): Promise<SignIn | undefined> {
      const attempt = await ofLink(link)
      return attempt && spend(link.slice(0, link.indexOf('.')), attempt)
    },
  }

  /** Counts a try of a code of this address. An attempt that no code matches does not use up the tries of others. */
  async function mayTry({ email, code_hash }: Attempt): Promise<boolean> {
    const { max, windowMs } = addressTries
    if (code_hash === '') return false
    return (await store.count(`sign-in-tries-of:${hashOf('address', email)}`, windowMs)) <= max
  }
}
