/**
 * `reply.page`: sends a page in the portal's frame, with what the frame says of the person who is signed in. And errors as pages: what
 * went wrong inside stays in the log; people read what they can do.
 */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { messageOf } from '../../runtime/message-of.ts'
import { TablesError } from '../../tables/port.ts'
import { html } from '../html/html.ts'
import { type PageOptions, page } from '../html/layout.ts'
import { PortalUnavailable } from '../own-events.ts'
import type { PortalStore } from '../store/port.ts'

/** A page, without what the frame gets from the session. */
type PageContent = Omit<PageOptions, 'signedInAs'>

declare module 'fastify' {
  interface FastifyReply {
    /** Sends the page. `path` marks its entry of the navigation. */
    page(content: PageContent): FastifyReply
  }
}

const pageType = 'text/html; charset=utf-8'

/** Decorates the app's replies, and answers every error and every unknown address with a page. */
export function addPages(app: FastifyInstance, logger: Logger): void {
  app.decorateReply('page', function reply(this: FastifyReply, content: PageContent) {
    const { account } = this.request
    // What the pages of a person show must not stay behind the back button after signing out.
    if (account) this.header('cache-control', 'no-store')
    else if (!this.hasHeader('cache-control')) this.header('cache-control', 'no-cache')
    return this.type(pageType).send(page({ ...content, signedInAs: account?.email }))
  })
  app.setNotFoundHandler((request, reply) => sendErrorPage(request, reply, 404))
  app.setErrorHandler((error: FastifyError | PageError, request, reply) => {
    if (error instanceof PageError) {
      if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds)
      return sendErrorPage(request, reply, error.status, error.message || undefined)
    }
    const status = statusOf(error)
    if (status >= 500) {
      const about = { requestId: request.id, route: request.routeOptions?.url }
      logger.error(
        { ...about, error: messageOf(error), stack: error.stack },
        'a request of the portal failed',
      )
    }
    return sendErrorPage(request, reply, status)
  })
}

function statusOf(error: FastifyError): number {
  if (error instanceof PortalUnavailable || (error instanceof TablesError && error.retryable)) return 503
  // Fastify's own errors, for example a body that is too large.
  return error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500
}

/**
 * Answers with the page of this status. `text` takes the place of its usual text. It needs no decoration: Fastify's own objects have none
 * for an address that it cannot read.
 */
export function sendErrorPage(
  { id, account }: FastifyRequest,
  reply: FastifyReply,
  status: number,
  text?: string,
): FastifyReply {
  const [title, usual] = texts[status] ?? (status < 500 ? notUnderstood : failed)
  const content = html`<h1>${title}</h1>
<p>${text ?? usual}</p>
${status >= 500 && html`<p>If it stays so, tell the operator this number: <code>${id}</code></p>`}
<p><a href="/">To the first page</a></p>`
  reply.code(status).header('cache-control', 'no-store').type(pageType)
  return reply.send(page({ title, path: '', content, signedInAs: account?.email }))
}

const notUnderstood = ['Not understood', 'The request could not be read. Go back and try again.'] as const
const failed = [
  'Something failed',
  'The fault is ours, and it is in our log. Try again in a minute.',
] as const
const texts: Readonly<Record<number, readonly [title: string, text: string]>> = {
  403: ['Not allowed', 'You may not do this.'],
  404: ['Not found', 'There is no such page. It may have moved: look for it in the navigation.'],
  413: ['Too large', 'The form is larger than the portal takes.'],
  415: ['Not understood', 'The portal takes forms only.'],
  421: ['Wrong address', 'The portal does not answer for this name.'],
  429: ['Too many requests', 'That was too much at once. Try again later.'],
  503: ['Not available now', 'Something that this page needs does not answer. Try again in a minute.'],
}

/** An answer that is an error, with a text for people in the place of the usual one. Thrown by handlers and hooks. */
export class PageError extends Error {
  override name = 'PageError'
  readonly status: number
  /** Seconds after which it makes sense to try again. */
  readonly retryAfterSeconds: number | undefined
  constructor(status: number, text = '', { retryAfterSeconds }: { retryAfterSeconds?: number } = {}) {
    super(text)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** How often something may be done within a window. The reason is for people. */
export interface Bound {
  max: number
  windowMs: number
  reason: string
}

/** Counts one more under this key. Beyond the bound the answer is a 429 with the reason. */
export async function countWithin(
  store: Pick<PortalStore, 'count'>,
  key: string,
  { max, windowMs, reason }: Bound,
): Promise<void> {
  if ((await store.count(key, windowMs)) <= max) return
  throw new PageError(429, reason, { retryAfterSeconds: windowMs / 1000 })
}
