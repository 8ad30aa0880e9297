/** The routes under /access. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { KeyError } from '../../api-keys/api-keys.ts'
import type { Portal } from '../app.ts'
import { html } from '../html/html.ts'
import { notice } from '../html/parts.ts'
import { textOf } from '../http/forms.ts'
import { PageError } from '../http/pages.ts'
import { requireAccount, signedIn } from '../http/session-hook.ts'
import { requestsContent } from '../usage/requests-page.ts'
import { sumOf } from '../usage/usage-view.ts'
import { doneTexts, sendPage, withUsage } from './access.ts'
import { addCopyRoutes, copyOf } from './copies.ts'
import { overviewPage, wayBack } from './key-pages.ts'
import { addKeyRoutes } from './key-routes.ts'
import { keyOfPath } from './key-state.ts'

export async function addAccessRoutes(app: FastifyInstance, portal: Portal): Promise<void> {
  const { keys, usageOf, requestsOf, now, logger } = portal
  await app.register(async pages => {
    pages.setErrorHandler((error, _request, reply) => sendReason(error, reply, logger))
    pages.addHook('preHandler', requireAccount)

    pages.get('/access', async (request, reply) => {
      const { account_id } = signedIn(request)
      const done = textOf(request.query, 'done')
      const content = overviewPage({
        keys: await withUsage(portal, await keys.ofAccount(account_id)),
        now: now(),
        copy: await copyOf(portal),
        done: Object.hasOwn(doneTexts, done) ? doneTexts[done as keyof typeof doneTexts] : undefined,
      })
      return sendPage(reply, 'API access', content)
    })

    // Only keys of the account are asked for, whatever the address says.
    pages.get('/access/requests', async (request, reply) => {
      const all = await keys.ofAccount(signedIn(request).account_id)
      const name = textOf(request.query, 'key')
      const one = keyOfPath(all, name)
      if (name !== '' && !one) throw new PageError(404)
      const per = textOf(request.query, 'per') === 'hour' ? 'hour' : 'day'
      const asked = { key: name, per, id: textOf(request.query, 'id').trim().slice(0, 64) } as const
      const some = one ? [one] : all
      const read = await Promise.all([usageOf(some, per), requestsOf(some, asked.id)]).then(
        ([used, requests]) => ({ ...requests, days: sumOf([...used.values()].map(({ days }) => days)) }),
        (error: unknown) => void logger.warn({ err: error }, 'the requests of keys cannot be read'),
      )
      const content = html`${wayBack()}${requestsContent({ keys: all, asked, read: read ?? undefined })}`
      return sendPage(reply, 'Requests', content)
    })

    addKeyRoutes(pages, portal)
    addCopyRoutes(pages, portal)
  })
}

/** Says why it was not done, and where to go on. Every other error is a fault of ours, and the app answers it; one beneath is logged here. */
function sendReason(error: unknown, reply: FastifyReply, logger: Portal['logger']): FastifyReply {
  if (!(error instanceof KeyError)) throw error
  const fault = faultBeneath(error)
  if (fault) logger.error({ err: fault }, 'a key could not be made, nor deleted again')
  const content = html`${wayBack()}
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
