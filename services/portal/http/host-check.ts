/**
 * The portal answers only for its own name. A page of another name that leads to the portal's address (DNS rebinding) could
 * otherwise act as the portal's own, and a made-up `Host` could get into links.
 */
import type { FastifyInstance } from 'fastify'
import { hostOf } from '../../shared/ops/ops-hosts.ts'
import { PageError } from './page-error.ts'

/** Refuses requests for other names. `hosts`: further names, in lower case. */
export function addHostCheck(
  app: FastifyInstance,
  { portalUrl, hosts }: { portalUrl: string; hosts: readonly string[] },
): void {
  const names = new Set([hostOf(new URL(portalUrl).host), ...hosts])
  app.addHook('onRequest', async request => {
    const host = hostOf(request.headers.host ?? '')
    if (host === undefined || !names.has(host))
      throw new PageError(421, `The portal does not answer for this name. Its address is ${portalUrl}`)
  })
}

/** The names of the loopback, for a portal that people open on the machine that it runs on. */
export const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '::1']
