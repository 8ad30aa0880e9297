/** Routes of integrations: add, edit, remove. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { keyPrefix } from '../../api-keys/credentials.ts'
import type { IntegrationFields } from '../account/integration.ts'
import { csrfField, fieldOf } from '../http/forms.ts'
import type { Account, Integration, PortalKey } from '../ports.ts'
import {
  type Access,
  type ById,
  integrationOf,
  notify,
  sendPage,
  signedIn,
  toOverview,
  withUsage,
} from './access.ts'
import { newFormToken } from './form-token.ts'
import {
  type IntegrationPageData,
  integrationPage,
  readIntegrationForm,
  removePage,
} from './integration-pages.ts'
import { isAlive } from './key-state.ts'

const empty: IntegrationFields = { name: '', url: '', contact_email: '' }

export function addIntegrationRoutes(app: FastifyInstance, access: Access): void {
  app.get('/access/integrations/new', async (request, reply) => {
    // The address of the account is a good guess for the contact. The person can change it.
    const fields = { ...empty, contact_email: signedIn(request).email }
    return sendForm(request, reply, { integrationId: undefined, fields, faults: {} })
  })

  app.post('/access/integrations', async (request, reply) => addIntegration(access, request, reply))

  app.get<ById>('/access/integrations/:id/edit', async (request, reply) => {
    const integration = await integrationOf(access, request)
    return sendForm(request, reply, {
      integrationId: integration.integration_id,
      fields: integration,
      faults: {},
    })
  })

  app.post<ById>('/access/integrations/:id', async (request, reply) => {
    const integration = await integrationOf(access, request)
    const { fields, faults } = readIntegrationForm(request.body)
    const form = { integrationId: integration.integration_id, fields, faults }
    if (Object.keys(faults).length > 0) return sendForm(request, reply.code(422), form)
    await access.countSave(signedIn(request))
    await access.accounts.saveIntegration({ ...integration, ...fields })
    return toOverview(reply, 'saved')
  })

  app.get<ById>('/access/integrations/:id/remove', async (request, reply) => {
    const integration = await integrationOf(access, request)
    const alive = await withUsage(access, await aliveKeysOf(access, integration))
    const title = `Remove ${integration.name}?`
    return sendPage(reply, title, removePage({ integration, alive, csrf: csrfField(request) }))
  })

  app.post<ById>('/access/integrations/:id/remove', async (request, reply) => {
    const integration = await integrationOf(access, request)
    await removeIntegration(access, signedIn(request), integration)
    return toOverview(reply, 'removed')
  })
}

async function addIntegration(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const account = signedIn(request)
  const { fields, faults } = readIntegrationForm(request.body)
  const form = { integrationId: undefined, fields, faults }
  if (Object.keys(faults).length > 0) return sendForm(request, reply.code(422), form)
  await access.countSave(account)
  const save = () =>
    access.accounts.saveIntegration({
      ...fields,
      integration_id: randomBytes(16).toString('hex'),
      account_id: account.account_id,
      created_at: access.now(),
    })
  await access.once(account.account_id, fieldOf(request, 'token'), save)
  // A form that was sent twice has added it before.
  return toOverview(reply, 'added')
}

/**
 * Revokes and deletes the keys of the integration, then removes it, then does the same with what was created meanwhile. So no key keeps its
 * contact address, and an interrupted removal can be done again.
 */
async function removeIntegration(access: Access, account: Account, integration: Integration): Promise<void> {
  const { account_id: accountId, integration_id: integrationId } = integration
  await revokeKeysOf(access, account, integration)
  await access.keys.deleteAll(accountId, integrationId)
  await access.accounts.removeIntegration(accountId, integrationId)
  await revokeKeysOf(access, account, integration)
  await access.keys.deleteAll(accountId, integrationId)
}

async function revokeKeysOf(access: Access, account: Account, integration: Integration): Promise<void> {
  for (const { key } of await aliveKeysOf(access, integration)) {
    await access.keys.revoke(account.account_id, key)
    notify(access, notices => notices.revoked(account, integration, keyPrefix(key)))
  }
}

async function aliveKeysOf(
  access: Access,
  { account_id, integration_id }: Integration,
): Promise<PortalKey[]> {
  const keys = await access.keys.ofAccount(account_id)
  return keys.filter(key => key.integration_id === integration_id && isAlive(key, access.now()))
}

function sendForm(
  request: FastifyRequest,
  reply: FastifyReply,
  data: Omit<IntegrationPageData, 'csrf' | 'formToken'>,
): FastifyReply {
  const isNew = data.integrationId === undefined
  const csrf = csrfField(request)
  const content = integrationPage({
    ...data,
    csrf,
    formToken: isNew ? newFormToken() : undefined,
  })
  const title = isNew ? 'Add an integration' : 'Edit the integration'
  // Screen readers read the title first.
  return sendPage(reply, reply.statusCode >= 400 ? `Not saved: ${title}` : title, content)
}
