/** What the routes under /access share: their dependencies, and how they answer. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { KeyError } from '../../api-keys/api-keys.ts'
import type { RandomBytes } from '../../api-keys/credentials.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { AccountError } from '../account/accounts.ts'
import { type Html, html } from '../html/html.ts'
import { notice } from '../html/parts.ts'
import { PageError, sendErrorPage } from '../http/error-pages.ts'
import type {
  Account,
  Accounts,
  Integration,
  KeyNotices,
  PortalKey,
  PortalKeys,
  UsageReader,
} from '../ports.ts'
import type { FormTokens } from './form-token.ts'
import { wayBack } from './key-pages.ts'
import { type KeyView, keyOfPath } from './key-state.ts'

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

/** Reads what the pages under /access show. Usage is an extra: if it cannot be read, the pages say so and still work. */

export interface AccessPorts {
  accounts: Pick<Accounts, 'integrations' | 'saveIntegration' | 'removeIntegration'>
  keys: PortalKeys
  usage: UsageReader
  logger: Pick<Logger, 'warn' | 'error'>
}

/** The integration of that id, if the account has it. */
export async function findIntegration(
  ports: AccessPorts,
  account: Account,
  integrationId: string,
): Promise<Integration | undefined> {
  const integrations = await ports.accounts.integrations(account.account_id)
  return integrations.find(({ integration_id }) => integration_id === integrationId)
}

/** The key that a path names by its first 16 characters, if the account has it. */
export async function findKey(
  ports: AccessPorts,
  account: Account,
  name: string,
): Promise<PortalKey | undefined> {
  return keyOfPath(await ports.keys.ofAccount(account.account_id), name)
}

/** The keys with their usage. */
export async function withUsage(ports: AccessPorts, keys: readonly PortalKey[]): Promise<KeyView[]> {
  if (keys.length === 0) return []
  try {
    const usage = await ports.usage.ofKeys(keys)
    return keys.map(key => ({ key, usage: usage.get(key.key) }))
  } catch (error) {
    ports.logger.warn({ err: error }, 'the usage of keys cannot be read: the page is shown without it')
    return keys.map(key => ({ key, usage: undefined }))
  }
}

/** The page that says why something was not done, and where to go on. */

export function problemPage({ title, reason }: { title: string; reason: string }): Html {
  return html`${wayBack()}
<h1>${title}</h1>
${notice(reason, 'bad')}
<p><a class="button" href="/access">Back to API access</a></p>`
}
