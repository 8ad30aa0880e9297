/**
 * What forms send: their fields, and the protection against requests that another site makes in the name of a person (CSRF), for
 * every request that changes something:
 *
 * - The form carries a token that is an HMAC of the session's cookie, or, before signing in, of a random cookie of the
 *   browser. Another site can neither read the cookie nor compute the token.
 * - The browser says where the form came from (`Sec-Fetch-Site`, `Origin`). If it was another site, the request is refused.
 *
 * A sign-in begins a new session, and so new tokens.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Portal } from '../app.ts'
import { type Html, html } from '../html/html.ts'
import { isSame, randomText, sealOf } from './cookies.ts'
import { PageError } from './pages.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The CSRF token of the forms in the answer. */
    csrfToken: () => string
  }
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
const browserPattern = /^[\w-]{22}$/

/** Checks every request of the app that is not a GET. No route can forget it. */
export function addCsrfProtection(app: FastifyInstance, { cookies, options }: Portal): void {
  const { origin } = new URL(options.portalUrl)
  const tokenOf = (secret: string) => sealOf(options.portalKey, 'csrf', secret)

  function secretOf(request: FastifyRequest): string | undefined {
    // Also if the session could not be read: the forms of its pages still work, above all the one that signs out.
    if (request.account !== undefined || request.isSessionUnknown) return cookies.session.read(request)
    const browser = cookies.browser.read(request)
    return browser !== undefined && browserPattern.test(browser) ? browser : undefined
  }

  function newBrowser(request: FastifyRequest, reply: FastifyReply): string {
    const browser = randomText(16)
    cookies.browser.set(reply, browser)
    // Further forms of the same answer get the same token.
    request.cookies = { ...request.cookies, [cookies.browser.name]: browser }
    return browser
  }

  app.decorateRequest('csrfToken', () => '')
  app.addHook('onRequest', async (request, reply) => {
    request.csrfToken = () => {
      // A kept page would have a token that is out of date.
      reply.header('cache-control', 'no-store')
      return tokenOf(secretOf(request) ?? newBrowser(request, reply))
    }
  })

  app.addHook('preHandler', async request => {
    if (safeMethods.has(request.method)) return
    if (!isOwnOrigin(request, origin)) throw new PageError(403, foreign)
    const secret = secretOf(request)
    if (secret === undefined || !isSame(fieldOf(request, '_csrf'), tokenOf(secret)))
      throw new PageError(403, outdated)
  })
}

/** The hidden field that every form needs that is sent by POST. */
export function csrfField(request: FastifyRequest): Html {
  return html`<input type="hidden" name="_csrf" value="${request.csrfToken()}">`
}

/** What the browser says of the page that sent the form. An old browser says nothing: then the token decides alone. */
function isOwnOrigin({ headers }: FastifyRequest, origin: string): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return headers.origin === undefined || headers.origin === origin
}

const foreign = 'This form was sent from another site. Open the page here, and send the form again.'
const outdated =
  'This form is out of date: it was opened before you signed in or out, or your browser does not keep cookies. Go back, reload the page, and send the form again.'

/** A field of the form as text. One that is missing or given twice is empty. */
export function fieldOf(request: FastifyRequest, name: string): string {
  return textOf(request.body, name)
}

/** A parameter of the query, in the same way. */
export function queryOf(request: FastifyRequest, name: string): string {
  return textOf(request.query, name)
}

/** A field of a body or a query. */
export function textOf(fields: unknown, name: string): string {
  if (typeof fields !== 'object' || fields === null || !Object.hasOwn(fields, name)) return ''
  const value = (fields as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : ''
}
