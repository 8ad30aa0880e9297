/**
 * The pages under /access: the keys of an account, and what each of them did. A path names a key by its first 16 characters.
 *
 * Every route needs a session, and every form has passed the app's check of the origin. An id of another account is answered like one that
 * does not exist. No cache keeps a page of a person (http/pages.ts). What an account can do within a time is bounded.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { activeKeysMax, KeyError } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { dayMs } from '../../runtime/runtime.ts'
import type { Portal } from '../app.ts'
import { type Html, html } from '../html/html.ts'
import { notice } from '../html/parts.ts'
import { randomText } from '../http/cookies.ts'
import { textOf } from '../http/forms.ts'
import { countWithin, PageError } from '../http/pages.ts'
import { requireAccount, signedIn } from '../http/session-hook.ts'
import type { KeyNotices } from '../notices/key-notices.ts'
import type { PortalKey } from '../ports.ts'
import { requestsContent } from '../usage/requests-page.ts'
import { sumOf } from '../usage/usage-view.ts'
import { addCopyRoutes, copyOf } from './copies.ts'
import { lifetimeOf, lifetimes } from './key-fields.ts'
import { type KeyFormData, keyForm, readKeyForm } from './key-form.ts'
import { activeCount, keyPage, keyPath, overviewPage, revokePage, secretPage, wayBack } from './key-pages.ts'
import { isAlive } from './portal-keys.ts'

type ByName = FastifyRequest<{ Params: { name: string } }>

/** Each is counted for an account within its window. */
export const accessBounds = {
  /** Every save stays in the log for a while. */
  saves: {
    max: 60,
    windowMs: dayMs / 24,
    reason: 'You changed keys very often within an hour. Try again in an hour.',
  },
  /** Making one waits for the log and the tables for seconds. */
  newKeys: {
    max: 20,
    windowMs: dayMs,
    reason: 'You asked for many new keys within a day. Try again tomorrow. Nothing was changed.',
  },
} as const

/** The words for what was done. Only these: an address cannot make the page say anything else. */
const doneTexts = new Map([
  ['saved', 'The key was saved.'],
  ['revoked', 'The key was revoked. The API refuses it within seconds.'],
])

export async function addAccessRoutes(app: FastifyInstance, portal: Portal): Promise<void> {
  const { usageOf, requestsOf, logger } = portal
  await app.register(async pages => {
    pages.setErrorHandler((error, _request, reply) => sendReason(error, reply, logger))
    pages.addHook('preHandler', requireAccount)

    pages.get('/access', async (request, reply) => {
      const keys = await keysOf(portal, request)
      const usage = await usageIfKnown(portal, keys)
      const content = overviewPage({
        keys: keys.map(key => ({ key, usage: usage.get(key.key) })),
        copy: await copyOf(portal),
        done: doneTexts.get(textOf(request.query, 'done')),
      })
      return sendPage(reply, 'API access', content)
    })

    // Only keys of the account are asked for, whatever the address says.
    pages.get('/access/requests', async (request, reply) => {
      const keys = await keysOf(portal, request)
      const key = textOf(request.query, 'key')
      const some = key === '' ? keys : [named(keys, key)]
      const per = textOf(request.query, 'per') === 'hour' ? 'hour' : 'day'
      const asked = { key, per, id: textOf(request.query, 'id').trim().slice(0, 64) } as const
      const read = await Promise.all([usageOf(some, per), requestsOf(some, asked.id)]).then(
        ([used, requests]) => ({ ...requests, days: sumOf([...used.values()].map(({ days }) => days)) }),
        (error: unknown) => void logger.warn({ err: error }, 'the requests of keys cannot be read'),
      )
      const content = html`${wayBack}${requestsContent({ keys, asked, read: read ?? undefined })}`
      return sendPage(reply, 'Requests', content)
    })

    addNewKeyRoutes(pages, portal)
    addKeyRoutes(pages, portal)
    addCopyRoutes(pages, portal)
  })
}

/**
 * A form must not act twice: a double click, a reload of the answer, a page that was gone back to. So it carries a random token, and
 * acts once within a day, in whatever portal process. A double click is sent once, where scripts run (static/portal.js). Elsewhere
 * the browser may show only the second answer: the secret is lost, and the answer says what to do.
 *
 * The token is no protection against other sites: the check of the origin is. What a form costs is bounded before its token is looked
 * at, so made-up tokens fill no store.
 */
function addNewKeyRoutes(pages: FastifyInstance, portal: Portal): void {
  const { keys, accounts, store, options } = portal

  pages.get('/access/keys/new', async (request, reply) => {
    const all = await keysOf(portal, request)
    const like = textOf(request.query, 'like')
    const old = like === '' ? undefined : named(all, like)
    // The address of the account is a good guess for the contact. The person can change it.
    const fields = old ?? { name: '', url: '', contact_email: signedIn(request).email }
    return sendForm(reply, {
      fields,
      expires: old && lifetimeOf(old),
      isFull: activeCount(all) >= activeKeysMax,
    })
  })

  pages.post('/access/keys', async (request, reply) => {
    const account = signedIn(request)
    const { account_id } = account
    const { fields, faults } = readKeyForm(request.body)
    const expires = textOf(request.body, 'expires')
    if (faults) return sendForm(reply.code(422), { fields, faults, expires })
    if (expires !== '' && !Object.hasOwn(lifetimes, expires)) throw new KeyError('Choose when the key ends.')
    await countWithin(store, `access-newKeys/${account_id}`, accessBounds.newKeys)
    const token = textOf(request.body, 'token')
    if (!/^[\w-]{22}$/.test(token)) throw new PageError(400, 'This form is not whole. Open the page again.')
    if (!(await store.claim(`form/${account_id}/${token}`, '', dayMs))) throw new KeyError(usedReason)
    const made = await keys.issue(account_id, fields, lifetimes[expires as keyof typeof lifetimes])
    notify(portal, notices => notices.created(account, fields, keyPrefix(made.key)))
    // A key that lands behind the deletion of its account is deleted, too, before anybody sees it.
    if (!(await accounts.find(account_id))) {
      await keys.deleteAll(account_id)
      throw new PageError(403, 'This account was deleted meanwhile, and the new key with it.')
    }
    return sendPage(reply, 'Your new key', secretPage({ ...made, name: fields.name, apiUrl: options.apiUrl }))
  })
}

const usedReason =
  'This form was sent before, so nothing was done now. If it created a key whose secret you did not see, revoke that key, and create another one.'

/** Looks at a key, edits it, revokes it. */
function addKeyRoutes(pages: FastifyInstance, portal: Portal): void {
  const keyOf = async (request: ByName) => named(await keysOf(portal, request), request.params.name)
  const viewOf = async (request: ByName) => {
    const key = await keyOf(request)
    return { key, usage: (await usageIfKnown(portal, [key])).get(key.key) }
  }
  const path = '/access/keys/:name'

  pages.get(path, async (request: ByName, reply) => {
    const view = await viewOf(request)
    return sendPage(reply, `Key ${keyPrefix(view.key.key)}`, keyPage(view))
  })

  // A key that has ended is neither edited nor revoked: both questions lead to its page.
  pages.get(`${path}/edit`, async (request: ByName, reply) => {
    const key = await keyOf(request)
    if (!isAlive(key)) return reply.redirect(keyPath(key), 303)
    return sendForm(reply, { path: keyPath(key), fields: key })
  })

  pages.get(`${path}/revoke`, async (request: ByName, reply) => {
    const view = await viewOf(request)
    if (!isAlive(view.key)) return reply.redirect(keyPath(view.key), 303)
    return sendPage(reply, `Revoke key ${keyPrefix(view.key.key)}?`, revokePage(view))
  })

  pages.post(`${path}/edit`, async (request: ByName, reply) => {
    const key = await keyOf(request)
    const { fields, faults } = readKeyForm(request.body)
    if (faults) return sendForm(reply.code(422), { path: keyPath(key), fields, faults })
    await countWithin(portal.store, `access-saves/${key.account_id}`, accessBounds.saves)
    await portal.keys.change(key, fields)
    return reply.redirect('/access?done=saved', 303)
  })

  pages.post(`${path}/revoke`, async (request: ByName, reply) => {
    const account = signedIn(request)
    const key = await keyOf(request)
    const tell = () => notify(portal, notices => notices.revoked(account, key, keyPrefix(key.key)))
    // A form that was sent twice has revoked it before.
    if (key.status !== 'revoked') await portal.keys.revoke(key, tell)
    return reply.redirect('/access?done=revoked', 303)
  })
}

function keysOf({ keys }: Portal, request: FastifyRequest): Promise<PortalKey[]> {
  return keys.ofAccount(signedIn(request).account_id)
}

/** The key of the account that begins with these 16 characters. One of another account is answered like one that does not exist. */
function named(keys: readonly PortalKey[], name: string): PortalKey {
  const [found, second] = keys.filter(({ key }) => keyPrefix(key) === name)
  if (!found || second) throw new PageError(404)
  return found
}

/** The usage by key. It is an extra: if it cannot be read, the pages say so and still work. */
async function usageIfKnown({ usageOf, logger }: Portal, keys: readonly PortalKey[]) {
  return usageOf(keys).catch((error: unknown): Awaited<ReturnType<typeof usageOf>> => {
    logger.warn({ err: error }, 'the usage of keys cannot be read: the page is shown without it')
    return new Map()
  })
}

/** Tells the notices what happened. The answer neither waits for mails nor fails with them. */
function notify({ notices, logger }: Portal, notice: (notices: KeyNotices) => Promise<void>): void {
  if (!notices) return
  Promise.try(notice, notices).catch((error: unknown) =>
    logger.error({ error: messageOf(error) }, 'a notice on a key could not be handed over'),
  )
}

function sendPage(reply: FastifyReply, title: string, content: Html): FastifyReply {
  return reply.page({ title, path: '/access', content })
}

function sendForm(reply: FastifyReply, data: KeyFormData): FastifyReply {
  const isNew = data.path === undefined
  const title = isNew ? 'Create a key' : 'Edit the key'
  const content = keyForm(data, isNew ? randomText(16) : undefined)
  // Screen readers read the title first.
  return sendPage(reply, data.faults ? `Not saved: ${title}` : title, content)
}

/** Says why it was not done, and where to go on. Every other error is a fault of ours, and the app answers it; one beneath is logged here. */
function sendReason(error: unknown, reply: FastifyReply, logger: Portal['logger']): FastifyReply {
  if (!(error instanceof KeyError)) throw error
  const fault = faultBeneath(error)
  if (fault) logger.error({ err: fault }, 'a key could not be made, nor deleted again')
  const content = html`${wayBack}
<h1>That did not work</h1>
${notice(sentence(error.message), 'bad')}
<p><a class="button" href="/access">Back to API access</a></p>`
  return sendPage(reply.code(fault ? 503 : 409), 'That did not work', content)
}

function faultBeneath({ cause }: Error): unknown {
  return cause instanceof KeyError ? faultBeneath(cause) : cause
}

function sentence(text: string): string {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`
  return ended.charAt(0).toUpperCase() + ended.slice(1)
}
