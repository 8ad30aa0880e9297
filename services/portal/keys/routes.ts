/** The routes under /access. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { PortalDependencies } from '../app.ts'
import { csrfField, queryOf } from '../http/forms.ts'
import { requireAccount } from '../http/session-hook.ts'
import { type Access, createAccess, doneTexts, sendPage, signedIn, withUsage } from './access.ts'
import { newFormToken } from './form-token.ts'
import { addIntegrationRoutes } from './integration-routes.ts'
import { addKeyRoutes } from './key-routes.ts'
import { overviewPage } from './overview-page.ts'

export async function addAccessRoutes(app: FastifyInstance, dependencies: PortalDependencies): Promise<void> {
  const access = createAccess(dependencies)
  await app.register(async pages => {
    pages.addHook('preHandler', requireAccount)
    pages.addHook('preHandler', async ({ account }) => account && access.countRequest(account))
    pages.get('/access', (request, reply) => sendOverview(access, request, reply))
    addIntegrationRoutes(pages, access)
    addKeyRoutes(pages, access)
  })
}

async function sendOverview(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { account_id } = signedIn(request)
  const [integrations, keys] = await Promise.all([
    access.accounts.integrations(account_id),
    access.keys.ofAccount(account_id),
  ])
  const done = queryOf(request, 'done')
  const content = overviewPage({
    integrations,
    keys: await withUsage(access, keys),
    now: access.now(),
    done: Object.hasOwn(doneTexts, done) ? doneTexts[done as keyof typeof doneTexts] : undefined,
    csrf: csrfField(request),
    formToken: newFormToken,
  })
  return sendPage(reply, 'API access', content)
}
