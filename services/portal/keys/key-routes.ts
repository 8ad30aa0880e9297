/** Routes of keys: create, look at, edit, revoke. A path names a key by its first 16 characters. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { activeKeysMax, KeyError } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import type { Portal } from '../app.ts'
import { textOf } from '../http/forms.ts'
import { PageError } from '../http/pages.ts'
import { signedIn } from '../http/session-hook.ts'
import { type ByName, countFor, keyOf, notify, sendPage, toOverview, withUsage } from './access.ts'
import { lifetimeOf, lifetimes } from './key-fields.ts'
import { type KeyFormData, keyForm, readKeyForm } from './key-form.ts'
import { keyPage, revokePage } from './key-pages.ts'
import { activeCount, isAlive, type KeyView, keyOfPath, keyPath } from './key-state.ts'
import { answerWithNewKey, newFormToken } from './new-key.ts'

export function addKeyRoutes(app: FastifyInstance, portal: Portal): void {
  app.get('/access/keys/new', async (request, reply) => {
    const { account_id, email } = signedIn(request)
    const keys = await portal.keys.ofAccount(account_id)
    const like = textOf(request.query, 'like')
    const old = keyOfPath(keys, like)
    if (like !== '' && !old) throw new PageError(404)
    // The address of the account is a good guess for the contact. The person can change it.
    const fields = old ?? { name: '', url: '', contact_email: email }
    const isFull = activeCount(keys, portal.now()) >= activeKeysMax
    const expires = old === undefined ? '' : lifetimeOf(old)
    return sendForm(reply, { path: undefined, fields, faults: {}, expires, isFull })
  })

  app.post('/access/keys', (request, reply) => create(portal, request, reply))

  app.get<ByName>('/access/keys/:name', async (request, reply) => {
    const view = await viewOf(portal, request)
    return sendPage(reply, `Key ${keyPrefix(view.key.key)}`, keyPage(view, portal.now()))
  })

  // The questions about a key that works. One that has ended leads to its page.
  const question = (name: 'edit' | 'revoke', send: (reply: FastifyReply, view: KeyView) => unknown) =>
    app.get<ByName>(`/access/keys/:name/${name}`, async (request, reply) => {
      const view = await viewOf(portal, request)
      return isAlive(view.key, portal.now()) ? send(reply, view) : reply.redirect(keyPath(view.key), 303)
    })

  question('edit', (reply, { key }) => sendForm(reply, { path: keyPath(key), fields: key, faults: {} }))
  question('revoke', (reply, view) =>
    sendPage(reply, `Revoke key ${keyPrefix(view.key.key)}?`, revokePage(view)),
  )

  app.post<ByName>('/access/keys/:name/edit', async (request, reply) => {
    const account = signedIn(request)
    const key = await keyOf(portal, request)
    const { fields, faults } = readKeyForm(request.body)
    if (Object.keys(faults).length > 0)
      return sendForm(reply.code(422), { path: keyPath(key), fields, faults })
    await countFor(portal, account, 'saves')
    await portal.keys.change(key, fields)
    return toOverview(reply, 'saved')
  })

  app.post<ByName>('/access/keys/:name/revoke', async (request, reply) => {
    const account = signedIn(request)
    const key = await keyOf(portal, request)
    const tell = () => notify(portal, notices => notices.revoked(account, key, keyPrefix(key.key)))
    // A form that was sent twice has revoked it before.
    if (key.status !== 'revoked') await portal.keys.revoke(key, tell)
    return toOverview(reply, 'revoked')
  })
}

async function viewOf(portal: Portal, request: FastifyRequest<ByName>): Promise<KeyView> {
  const key = await keyOf(portal, request)
  return (await withUsage(portal, [key]))[0] ?? { key, usage: undefined }
}

function sendForm(reply: FastifyReply, data: Omit<KeyFormData, 'formToken'>): FastifyReply {
  const isNew = data.path === undefined
  const formToken = isNew ? newFormToken() : undefined
  const content = keyForm({ ...data, formToken })
  const title = isNew ? 'Create a key' : 'Edit the key'
  // Screen readers read the title first.
  return sendPage(reply, reply.statusCode >= 400 ? `Not saved: ${title}` : title, content)
}

async function create(portal: Portal, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { fields, faults } = readKeyForm(request.body)
  const expires = textOf(request.body, 'expires')
  if (Object.keys(faults).length > 0)
    return sendForm(reply.code(422), { path: undefined, fields, faults, expires })
  if (expires !== '' && !Object.hasOwn(lifetimes, expires)) throw new KeyError('Choose when the key ends.')
  return answerWithNewKey(portal, request, reply, fields, lifetimes[expires as keyof typeof lifetimes])
}
