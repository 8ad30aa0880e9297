/**
 * The pages under /access: integrations, their keys, and what each key did.
 *
 * Every route needs a session, and every form has passed the app's CSRF check. An id of another account is answered like one that
 * does not exist. A page is never shown from a cache.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { PortalDependencies } from '../app.ts'
import { csrfField } from '../http/csrf.ts'
import { PageError } from '../http/error-pages.ts'
import { requireAccount } from '../http/session-hook.ts'
import type { Account } from '../ports.ts'
import { type Access, doneTexts, sendPage, signedIn, withUsage } from './access.ts'
import { createFormTokens } from './form-token.ts'
import { addIntegrationRoutes } from './integration-routes.ts'
import { addKeyRoutes } from './key-routes.ts'
import { overviewPage } from './overview-page.ts'
import { defaultPortalKeysOptions } from './portal-keys.ts'

export type AccessDependencies = Pick<
  PortalDependencies,
  'accounts' | 'keys' | 'usage' | 'notices' | 'store' | 'options' | 'now' | 'randomBytes' | 'logger'
>

const hourMs = 3_600_000
/** How often an account may add or change integrations within an hour. */
export const savesPerHourMax = 60
const tooManySaves = 'You changed integrations very often within an hour. Try again in an hour.'
/** How often an account may ask for a new key within an hour. Each waits for the log and the tables for seconds. */
export const newKeysPerHourMax = 30
const tooManyKeys = 'You asked for new keys very often within an hour. Try again in an hour.'
const dayMs = 24 * hourMs
/**
 * How many keys the portal tries to make for an account within a day. The tables forget removed keys, and this count does not,
 * so the bound also holds for an account that removes its integration after each key.
 */
export const madeKeysPerDayMax = defaultPortalKeysOptions.issuedPerDayMax
const tooManyMadeKeys = 'You asked for many new keys within a day. Try again tomorrow. Nothing was changed.'
const minuteMs = 60_000
/** How many requests under /access an account may send within a minute. Each reads the tables. */
export const requestsPerMinuteMax = 120
const tooManyRequests = 'Your account opened very many pages within a minute. Try again in a minute.'

/** Adds the pages to the app. */
export async function registerAccessPages(
  app: FastifyInstance,
  dependencies: AccessDependencies,
): Promise<void> {
  const { store, options } = dependencies
  const tokens = createFormTokens({
    ...dependencies,
    portalKey: options.portalKey,
    store: { claim: async (id, ttlMs) => (await store.count(id, ttlMs)) === 1 },
  })
  const bound = (name: string, max: number, windowMs: number, reason: string) => async (account: Account) => {
    if ((await store.count(`${name}/${account.account_id}`, windowMs)) <= max) return
    throw new PageError(429, reason, { retryAfterSeconds: windowMs / 1000 })
  }
  const countRequest = bound('access-requests', requestsPerMinuteMax, minuteMs, tooManyRequests)
  const access: Access = {
    ...dependencies,
    tokens,
    makingKeys: new Set(),
    countSave: bound('integration-saves', savesPerHourMax, hourMs, tooManySaves),
    countNewKey: bound('new-keys', newKeysPerHourMax, hourMs, tooManyKeys),
    countMadeKey: bound('made-keys', madeKeysPerDayMax, dayMs, tooManyMadeKeys),
    apiUrl: options.apiUrl,
  }
  await app.register(async pages => {
    pages.addHook('preHandler', requireAccount)
    pages.addHook('preHandler', async request => {
      if (request.account !== undefined) await countRequest(request.account)
    })
    pages.get<{ Querystring: { done?: unknown } }>('/access', (request, reply) =>
      sendOverview(access, request, reply),
    )
    addIntegrationRoutes(pages, access)
    addKeyRoutes(pages, access)
  })
}

async function sendOverview(
  access: Access,
  request: FastifyRequest<{ Querystring: { done?: unknown } }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const account = signedIn(request)
  const [integrations, keys] = await Promise.all([
    access.accounts.integrations(account.account_id),
    access.keys.ofAccount(account.account_id),
  ])
  const { done } = request.query
  const content = overviewPage({
    integrations,
    keys: await withUsage(access, keys),
    now: access.now(),
    done:
      typeof done === 'string' && Object.hasOwn(doneTexts, done)
        ? doneTexts[done as keyof typeof doneTexts]
        : undefined,
    csrf: csrfField(request),
    formToken: () => access.tokens.make(account.account_id),
  })
  return sendPage(reply, 'API access', content)
}
