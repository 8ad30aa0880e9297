/**
 * What forms send: their fields, and the protection against requests that another site makes in the name of a person (CSRF). A browser
 * says with every form where it came from, in headers that no page can set. The cookies are SameSite=Lax besides.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PageError } from './pages.ts'

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Refuses what may change something, unless a page of the portal sent it. No route can forget it. */
export function addOriginCheck(app: FastifyInstance, portalUrl: string): void {
  const own = new URL(portalUrl)
  app.addHook('preHandler', async request => {
    if (!safeMethods.has(request.method) && !isFromOwnPage(request, own)) throw new PageError(403, foreign)
  })
}

/** A request that says nothing is refused: every browser of today sends `Origin` with a form. */
function isFromOwnPage({ headers }: FastifyRequest, own: URL): boolean {
  const { origin, 'sec-fetch-site': site } = headers
  if (origin === undefined && site === undefined) return false
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  // Under `Referrer-Policy: no-referrer`, which many a proxy adds, a form of our own page has the origin `null`. So have sandboxed
  // frames, `data:` pages and redirects of other sites, but with `cross-site`.
  if (origin === 'null') return site === 'same-origin'
  // `Host` is one of our names: addHostCheck let it pass. Its port may be that of a tunnel.
  return [undefined, own.origin, `${own.protocol}//${headers.host?.toLowerCase()}`].includes(origin)
}

const foreign = 'This form was sent from another site. Open the page here, and send the form again.'

/** A field of a body or a query as text. One that is missing or given twice is empty. */
export function textOf(fields: unknown, name: string): string {
  if (typeof fields !== 'object' || fields === null || !Object.hasOwn(fields, name)) return ''
  const value = (fields as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : ''
}
