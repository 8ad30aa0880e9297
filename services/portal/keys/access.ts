/**
 * The pages under /access: the keys of an account, and what each of them did. Here: what all of them share.
 *
 * Every route needs a session, and every form has passed the app's check of the origin. An id of another account is answered like one that
 * does not exist. A page is never shown from a cache. What an account can do within a time is bounded.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { messageOf } from '../../runtime/message-of.ts'
import type { Portal } from '../app.ts'
import type { Html } from '../html/html.ts'
import { countWithin, PageError } from '../http/pages.ts'
import { signedIn } from '../http/session-hook.ts'
import type { KeyNotices } from '../notices/key-notices.ts'
import type { Account, PortalKey } from '../ports.ts'
import { type KeyView, keyOfPath } from './key-state.ts'

export type ByName = { Params: { name: string } }

const hourMs = 3_600_000

/** Each is counted for an account within its window. */
export const accessBounds = {
  /** Every save stays in the log for a while. */
  saves: {
    max: 60,
    windowMs: hourMs,
    reason: 'You changed keys very often within an hour. Try again in an hour.',
  },
  /** Making one waits for the log and the tables for seconds. */
  newKeys: {
    max: 20,
    windowMs: 24 * hourMs,
    reason: 'You asked for many new keys within a day. Try again tomorrow. Nothing was changed.',
  },
} as const

/** Counts one more of the account. Throws if it has done it too often. */
export function countFor({ store }: Portal, { account_id }: Account, name: keyof typeof accessBounds) {
  return countWithin(store, `access-${name}/${account_id}`, accessBounds[name])
}

/** Sends a page under /access. No cache keeps it: it shows what belongs to one person. */
export function sendPage(reply: FastifyReply, title: string, content: Html): FastifyReply {
  return reply.header('cache-control', 'no-store').page({ title, path: '/access', content })
}

/** Leads to the overview, which says what was done. */
export function toOverview(reply: FastifyReply, done: keyof typeof doneTexts): FastifyReply {
  return reply.redirect(`/access?done=${done}`, 303)
}

/** The words for what was done. Only these: an address cannot make the page say anything else. */
export const doneTexts = {
  saved: 'The key was saved.',
  revoked: 'The key was revoked. The API refuses it within seconds.',
} as const

/** Tells the notices what happened. The answer neither waits for mails nor fails with them. */
export function notify({ notices, logger }: Portal, notice: (notices: KeyNotices) => Promise<void>): void {
  if (!notices) return
  Promise.try(notice, notices).catch((error: unknown) =>
    logger.error({ error: messageOf(error) }, 'a notice on a key could not be handed over'),
  )
}

/** The key that the path names by its first 16 characters. One of another account is answered like one that does not exist. */
export async function keyOf({ keys }: Portal, request: FastifyRequest<ByName>): Promise<PortalKey> {
  const found = keyOfPath(await keys.ofAccount(signedIn(request).account_id), request.params.name)
  if (!found) throw new PageError(404)
  return found
}

/** The keys with their usage. It is an extra: if it cannot be read, the pages say so and still work. */
export async function withUsage({ usageOf, logger }: Portal, keys: readonly PortalKey[]): Promise<KeyView[]> {
  const used = await usageOf(keys).catch((error: unknown) => {
    logger.warn({ err: error }, 'the usage of keys cannot be read: the page is shown without it')
    return undefined
  })
  return keys.map(key => ({ key, usage: used?.get(key.key) }))
}
