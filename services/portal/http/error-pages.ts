/** Errors as pages. What went wrong inside stays in the log; people read what they can do. */
import type { ServerResponse } from 'node:http'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { messageOf } from '../../runtime/message-of.ts'
import { TablesError } from '../../tables/port.ts'
import { html } from '../html/html.ts'
import { page } from '../html/layout.ts'
import { PortalUnavailable } from '../own-events.ts'
import type { PageContent } from './page-reply.ts'

interface ErrorText {
  title: string
  text: string
}

const texts: Readonly<Record<number, ErrorText>> = {
  400: { title: 'Not understood', text: 'The request could not be read. Go back and try again.' },
  403: { title: 'Not allowed', text: 'You may not do this.' },
  404: {
    title: 'Not found',
    text: 'There is no such page. It may have moved: look for it in the navigation.',
  },
  405: { title: 'Not possible', text: 'This address does not take this kind of request.' },
  408: { title: 'Too slow', text: 'The request did not arrive in time. Try again.' },
  413: { title: 'Too large', text: 'The form is larger than the portal takes.' },
  415: { title: 'Not understood', text: 'The portal takes forms only.' },
  421: { title: 'Wrong address', text: 'The portal does not answer for this name.' },
  429: { title: 'Too many requests', text: 'That was too much at once. Try again later.' },
  500: { title: 'Something failed', text: 'The fault is ours, and it is in our log. Try again in a minute.' },
  503: {
    title: 'Not available now',
    text: 'Something that this page needs does not answer. Try again in a minute.',
  },
}

/** The title and the text of a status. */
export function errorText(status: number): ErrorText {
  return texts[status] ?? texts[status < 500 ? 400 : 500] ?? { title: 'Error', text: '' }
}

/** Answers every error and every unknown address with a page. */
export function addErrorPages(app: FastifyInstance, logger: Logger): void {
  app.setNotFoundHandler((request, reply) => sendErrorPage(request, reply, 404))
  app.setErrorHandler((error: FastifyError | PageError, request, reply) => {
    if (error instanceof PageError) {
      if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds)
      return sendErrorPage(request, reply, error.status, error.message)
    }
    const status = statusOf(error)
    if (status >= 500) {
      const { routeOptions, id } = request
      logger.error(
        { requestId: id, route: routeOptions?.url, error: messageOf(error), stack: error.stack },
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

/** Sends the page of this status. `text` takes the place of its usual text. */
export function sendErrorPage(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  text?: string,
): FastifyReply {
  reply.code(status).header('cache-control', 'no-store')
  return reply.page(errorContent(request.id, status, text))
}

/** Answers an address that Fastify cannot read. It runs no hooks for it and knows none of our decorations. */
export function answerBadAddress(
  response: ServerResponse,
  requestId: string,
  headers: Record<string, string>,
): void {
  const body = page(errorContent(requestId, 400))
  response.writeHead(400, {
    ...headers,
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(body)
}

function errorContent(requestId: string, status: number, text?: string): PageContent {
  const { title, text: usual } = errorText(status)
  return {
    title,
    path: '',
    content: html`<h1>${title}</h1>
<p>${text ?? usual}</p>
${status >= 500 && html`<p>If it stays so, tell the operator this number: <code>${requestId}</code></p>`}
<p><a href="/">To the first page</a></p>`,
  }
}

/** An answer that is an error, with a text for people. Thrown by handlers and hooks. */
export class PageError extends Error {
  override name = 'PageError'
  readonly status: number
  /** Seconds after which it makes sense to try again. */
  readonly retryAfterSeconds: number | undefined
  constructor(status: number, text: string, { retryAfterSeconds }: { retryAfterSeconds?: number } = {}) {
    super(text)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}
