/** The security headers of every answer of the portal: pages, files, redirects and errors. Pure. */
import type { FastifyInstance } from 'fastify'
import { hostOf } from '../../runtime/ops/ops-server.ts'
import type { PortalOptions } from '../app.ts'
import { PageError } from './pages.ts'

/** Nothing is loaded but what the portal itself serves, and no script or style stands in a page. The reference calls the API. */
export function securityHeaders({ portalUrl, apiUrl }: PortalOptions): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${new URL(apiUrl).origin}`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ]
  const isHttps = new URL(portalUrl).protocol === 'https:'
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    // Not `no-referrer`: with it browsers send `Origin: null` with forms, and one that sends no `Sec-Fetch-Site` would be refused.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    ...(isHttps && { 'strict-transport-security': 'max-age=31536000' }),
  }
}

/*
 * The portal answers only for its own name. A page of another name that leads to the portal's address (DNS rebinding) could
 * otherwise act as the portal's own, and a made-up `Host` could get into links.
 */

/** Refuses requests for other names. `hosts`: further names, in lower case. */
export function addHostCheck(app: FastifyInstance, { portalUrl, hosts }: PortalOptions): void {
  const names = new Set([hostOf(new URL(portalUrl).host), ...hosts])
  app.addHook('onRequest', async request => {
    const host = hostOf(request.headers.host ?? '')
    if (host === undefined || !names.has(host))
      throw new PageError(421, `The portal does not answer for this name. Its address is ${portalUrl}`)
  })
}

/** The names of the loopback, for a portal that people open on the machine that it runs on. */
export const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '::1']
