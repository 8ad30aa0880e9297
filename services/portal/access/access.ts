/** What the routes under /access share: their dependencies, and how they answer. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { KeyError } from '../../shared/api-keys/api-keys.ts'
import type { RandomBytes } from '../../shared/api-keys/credentials.ts'
import { messageOf } from '../../shared/message-of.ts'
import { AccountError } from '../accounts/accounts.ts'
import type { Html } from '../html/html.ts'
import { sendErrorPage } from '../http/error-pages.ts'
import { PageError } from '../http/page-error.ts'
import type { Account, KeyNotices } from '../ports.ts'
import type { AccessPorts } from './access-data.ts'
import type { FormTokens } from './form-token.ts'
import { problemPage } from './problem-page.ts'

export interface Access extends AccessPorts {
  notices: KeyNotices
  tokens: FormTokens
  /** Throws if the account saved integrations too often: every save stays in the log for a while. */
  countSave: (account: Account) => Promise<void>
  /** Throws if the account asked for new keys too often. */
  countNewKey: (account: Account) => Promise<void>
  /** As `countNewKey`, within a day. Removed keys stay in this count. Called only before a key is made. */
  countMadeKey: (account: Account) => Promise<void>
  /** The accounts for which this process makes a key now: one at a time for each. */
  makingKeys: Set<string>
  /** The public address of the API, with `/api/v1`. */
  apiUrl: string
  /** Unix milliseconds. */
  now: () => number
  randomBytes: RandomBytes
}

/** The account of the request. The routes run only with one. */
export function signedIn(request: FastifyRequest): Account {
  if (request.account === undefined) throw new PageError(403, 'You are signed out. Sign in and try again.')
  return request.account
}

/** Sends a page under /access. No cache keeps it: it shows what belongs to one person. */
export function sendPage(reply: FastifyReply, title: string, content: Html): FastifyReply {
  return reply.header('cache-control', 'no-store').page({ title, path: '/access', content })
}

/** Answers 404. A key or an integration of another account gets the same page as one that does not exist. */
export function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendErrorPage(request, reply, 404)
}

/** Says why nothing was done. */
export function sendProblem(reply: FastifyReply, title: string, reason: string, status = 409): FastifyReply {
  return sendPage(reply.code(status), title, problemPage({ title, reason }))
}

/** The reason for people, if the error has one. Every other error is a fault of ours, and the app answers it. */
export function reasonOf(error: unknown): string | undefined {
  return error instanceof KeyError || error instanceof AccountError ? error.message : undefined
}

/** Leads to the overview, which says what was done. */
export function toOverview(reply: FastifyReply, done: keyof typeof doneTexts): FastifyReply {
  return reply.redirect(`/access?done=${done}`, 303)
}

/** The words for what was done. Only these: an address cannot make the page say anything else. */
export const doneTexts = {
  added: 'The integration was added. Create its key next.',
  saved: 'The integration was saved.',
  removed: 'The integration was removed.',
  revoked: 'The key was revoked. The API refuses it within seconds.',
} as const

/** Tells the notices what happened. The answer neither waits for mails nor fails with them. */
export function notify(access: Access, notice: () => Promise<void>): void {
  Promise.try(notice).catch((error: unknown) =>
    access.logger.error({ error: messageOf(error) }, 'a notice on a key could not be handed over'),
  )
}
