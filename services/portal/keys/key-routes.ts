/** Routes of keys: create, look at, revoke, replace. A path names a key by its first 16 characters. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { KeyError } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { csrfField, fieldOf } from '../http/forms.ts'
import type { Account, Integration, Overlap, PortalKey } from '../ports.ts'
import {
  type Access,
  type ById,
  type ByName,
  findIntegration,
  integrationOf,
  keyOf,
  notify,
  sendPage,
  signedIn,
  toOverview,
  withUsage,
} from './access.ts'
import { newFormToken } from './form-token.ts'
import { keyPage, replacePage, revokePage } from './key-pages.ts'
import { activeCount, isAlive, type KeyView, keyPath } from './key-state.ts'
import { answerWithNewKey, type NewKey } from './new-key.ts'

export function addKeyRoutes(app: FastifyInstance, access: Access): void {
  app.post<ById>('/access/integrations/:id/keys', async (request, reply) => {
    const integration = await integrationOf(access, request)
    return answerWithNewKey(access, request, reply, () => createKey(access, signedIn(request), integration))
  })

  app.get<ByName>('/access/keys/:name', async (request, reply) => {
    const view = await viewOf(access, request)
    return sendPage(reply, `Key ${keyPrefix(view.key.key)}`, keyPage({ view, now: access.now() }))
  })

  app.get<ByName>('/access/keys/:name/revoke', async (request, reply) => {
    const view = await viewOf(access, request)
    if (!isAlive(view.key, access.now())) return reply.redirect(keyPath(view.key), 303)
    const data = { view, now: access.now(), csrf: csrfField(request) }
    return sendPage(reply, `Revoke key ${keyPrefix(view.key.key)}?`, revokePage(data))
  })

  app.post<ByName>('/access/keys/:name/revoke', async (request, reply) => revoke(access, request, reply))

  app.get<ByName>('/access/keys/:name/replace', async (request, reply) => {
    const view = await viewOf(access, request)
    if (!isAlive(view.key, access.now())) return reply.redirect(keyPath(view.key), 303)
    return sendReplacePage(access, request, reply, view)
  })

  app.post<ByName>('/access/keys/:name/replace', async (request, reply) => replace(access, request, reply))
}

async function viewOf(access: Access, request: FastifyRequest<ByName>): Promise<KeyView> {
  const key = await keyOf(access, request)
  return (await withUsage(access, [key]))[0] ?? { key, usage: undefined }
}

async function createKey(access: Access, account: Account, integration: Integration): Promise<NewKey> {
  const made = await access.keys.issue(integration)
  await endIfRemoved(access, account, integration, made.key)
  notify(access, notices => notices.created(account, integration, keyPrefix(made.key)))
  return { ...made, name: integration.name }
}

// The integration may have been removed while its key was made. Its key must not outlive it.
async function endIfRemoved(
  access: Access,
  account: Account,
  { integration_id }: Integration,
  key: string,
): Promise<void> {
  if (await findIntegration(access, account, integration_id)) return
  await access.keys.revoke(account.account_id, key)
  await access.keys.deleteAll(account.account_id, integration_id)
  throw new KeyError('The integration was removed meanwhile, so its new key was revoked again.')
}

async function revoke(
  access: Access,
  request: FastifyRequest<ByName>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const account = signedIn(request)
  const key = await keyOf(access, request)
  // A form that was sent twice has revoked it before.
  if (key.status === 'revoked') return toOverview(reply, 'revoked')
  await access.keys.revoke(account.account_id, key.key)
  const owner = (await findIntegration(access, account, key.integration_id)) ?? key
  notify(access, notices => notices.revoked(account, owner, keyPrefix(key.key)))
  return toOverview(reply, 'revoked')
}

async function sendReplacePage(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
  view: KeyView,
): Promise<FastifyReply> {
  const account = signedIn(request)
  const integrations = await access.accounts.integrations(account.account_id)
  const keys = await access.keys.ofAccount(account.account_id)
  const content = replacePage({
    view,
    now: access.now(),
    active: activeCount(keys, access.now()),
    integrations,
    hasIntegration: integrations.some(({ integration_id }) => integration_id === view.key.integration_id),
    formToken: newFormToken(),
    csrf: csrfField(request),
  })
  return sendPage(reply, `Replace key ${keyPrefix(view.key.key)}`, content)
}

async function replace(
  access: Access,
  request: FastifyRequest<ByName>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const account = signedIn(request)
  const key = await keyOf(access, request)
  const overlap = overlaps.get(fieldOf(request, 'overlap'))
  if (!overlap) throw new KeyError('Choose when the old key ends.')
  // A key of an operator gets an integration with its replacement.
  const integration =
    (await findIntegration(access, account, key.integration_id)) ??
    (await findIntegration(access, account, fieldOf(request, 'integration')))
  if (!integration) throw new KeyError('Choose the integration of the new key.')
  return answerWithNewKey(access, request, reply, () =>
    makeReplacement(access, account, key, overlap, integration),
  )
}

async function makeReplacement(
  access: Access,
  account: Account,
  old: PortalKey,
  overlap: OverlapChoice,
  integration: Integration,
): Promise<NewKey> {
  // The person hears of the revocation also if the new key fails.
  const onRevoked = () => notify(access, notices => notices.revoked(account, integration, keyPrefix(old.key)))
  const made = await access.keys.replace(account.account_id, old.key, overlap.overlap, integration, onRevoked)
  await endIfRemoved(access, account, integration, made.key)
  notify(access, notices => notices.created(account, integration, keyPrefix(made.key)))
  return {
    ...made,
    name: integration.name,
    replaced: `The old key ${keyPrefix(old.key)}… ${overlap.consequence}`,
  }
}

interface OverlapChoice {
  overlap: Overlap
  consequence: string
}

const overlaps: ReadonlyMap<string, OverlapChoice> = new Map([
  ['at-once', { overlap: 'at-once', consequence: 'has ended.' }],
  ['one-hour', { overlap: 'one-hour', consequence: 'works for one more hour.' }],
  ['one-day', { overlap: 'one-day', consequence: 'works for 24 more hours.' }],
])
