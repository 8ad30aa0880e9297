/**
 * The pages under /access: integrations, their keys, and what each key did.
 *
 * Every route needs a session, and every form has passed the app's CSRF check. An id of another account is answered like one that
 * does not exist. A page is never shown from a cache.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { PortalDependencies } from '../app.ts'
import { csrfField } from '../http/csrf.ts'
import { PageError } from '../http/page-error.ts'
import { requireAccount } from '../http/session-hook.ts'
import { type Access, doneTexts, sendPage, signedIn } from './access.ts'
import { withUsage } from './access-data.ts'
import { createFormTokens } from './form-token.ts'
import { addIntegrationRoutes } from './integration-routes.ts'
import { addKeyRoutes } from './key-routes.ts'
import { overviewPage } from './overview-page.ts'

export type AccessDependencies = Pick<
  PortalDependencies,
  'accounts' | 'keys' | 'usage' | 'notices' | 'store' | 'options' | 'now' | 'randomBytes' | 'logger'
>

const hourMs = 3_600_000
/** How often an account may add or change integrations within an hour. */
export const savesPerHourMax = 60
const tooManySaves = 'You changed integrations very often within an hour. Try again in an hour.'

/** Adds the pages to the app. */
export async function registerAccessPages(
  app: FastifyInstance,
  dependencies: AccessDependencies,
): Promise<void> {
  const { store, options } = dependencies
  const tokens = createFormTokens({
    ...dependencies,
    store: { claim: async (id, ttlMs) => (await store.count(id, ttlMs)) === 1 },
  })
  const access: Access = {
    ...dependencies,
    tokens,
    async countSave({ account_id }) {
      const saves = await store.count(`integration-saves/${account_id}`, hourMs)
      if (saves > savesPerHourMax)
        throw new PageError(429, tooManySaves, { retryAfterSeconds: hourMs / 1000 })
    },
    apiUrl: options.apiUrl,
  }
  await app.register(async pages => {
    pages.addHook('preHandler', requireAccount)
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
    formToken: access.tokens.make,
  })
  return sendPage(reply, 'API access', content)
}
