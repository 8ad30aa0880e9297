/**
 * The portal's HTTP app: what every request passes through, and the pages.
 *
 * Order of a request: security headers -> Host -> session -> body -> origin -> handler. Promise: every answer to a request, errors included,
 * carries the security headers; every request that changes something came from a page of the portal.
 */
import { randomUUID } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import fastifyFormbody from '@fastify/formbody'
import Fastify, { type FastifyInstance } from 'fastify'
import { withoutSlash } from '../../contracts/api/published-openapi.ts'
import { closeServer } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { addressMatcher } from '../runtime/http/addresses.ts'
import { createConnections } from '../runtime/http/connections.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { addAccountPages } from './account/account-pages.ts'
import type { Accounts } from './account/accounts.ts'
import { addDataPage } from './guide/data-page.ts'
import { addPublicPages } from './guide/public-pages.ts'
import type { Answers, DataPictures, LiveState } from './guide/readings.ts'
import { type Cookies, createCookies } from './http/cookies.ts'
import { addOriginCheck } from './http/forms.ts'
import { addHostCheck, securityHeaders } from './http/headers.ts'
import { addPages, sendErrorPage } from './http/pages.ts'
import { addRequestLog, serverOptions } from './http/server-options.ts'
import { addSessionHook } from './http/session-hook.ts'
import { addStaticFiles } from './http/static-files.ts'
import type { PortalKeys } from './keys/portal-keys.ts'
import { addAccessRoutes } from './keys/routes.ts'
import type { KeyNotices } from './notices/key-notices.ts'
import type { Mailer } from './ports.ts'
import type { OidcSettings } from './sign-in/oidc.ts'
import { addSignInRoutes, addSignOutRoutes } from './sign-in/routes.ts'
import { createSessions, type Sessions } from './sign-in/sessions.ts'
import type { Freshness } from './status/freshness.ts'
import { addStatusPage } from './status/status-page.ts'
import type { PortalStore } from './store/port.ts'
import type { RequestsOf, UsageOf } from './usage/usage-reader.ts'

export interface PortalOptions extends Config {
  /** The public address of the portal: its origin. */
  portalUrl: string
  /** The public address of the API, with `/api/v1`. */
  apiUrl: string
  /** The public address of the SQL port; it may have `?user=`. Undefined if it is not set. */
  sqlUrl?: string | undefined
  /** The database that the data teams query. */
  viewsDatabase: string
  /** 64 hex digits. Signs what the portal gives to browsers. */
  portalKey: string
  /** Names that the portal answers for, beside the one of `portalUrl`. */
  hosts: readonly string[]
  /** The provider through which people can sign in. */
  oidc?: OidcSettings | undefined
}

/** What the app needs of the rest. */
export interface PortalDependencies extends Pick<Runtime, 'now' | 'logger'> {
  accounts: Accounts
  keys: PortalKeys
  usageOf: UsageOf
  requestsOf: RequestsOf
  /** Undefined: people cannot sign in by mail, and get no notices. */
  mailer?: Pick<Mailer, 'send' | 'mailsAre'> | undefined
  notices?: KeyNotices | undefined
  liveState: () => Promise<LiveState>
  pictures: () => Promise<DataPictures>
  answers: () => Promise<Answers>
  /** Rejects if it cannot be read. */
  freshness: () => Promise<Freshness>
  store: PortalStore
  options: PortalOptions
}

/** What its hooks and routes get. */
export interface Portal extends PortalDependencies {
  cookies: Cookies
  sessions: Sessions
}

/** Creates the app. It does not listen yet. */
export async function createPortalApp(dependencies: PortalDependencies): Promise<FastifyInstance> {
  const { options, logger } = dependencies
  const headers = securityHeaders(options)
  const isTrustedProxy = addressMatcher(options.PLEDGEVIEW_TRUST_PROXY)
  const app = Fastify({
    ...serverOptions,
    trustProxy: options.PLEDGEVIEW_TRUST_PROXY.length > 0 && isTrustedProxy,
    genReqId: () => randomUUID(),
    // Fastify runs no hook for these errors.
    frameworkErrors: (_error, request, reply) => void sendErrorPage(request, reply.headers(headers), 400),
  })
  if (options.portalUrl.startsWith('https:') && options.PLEDGEVIEW_TRUST_PROXY.length === 0)
    logger.warn(noProxy)
  app.server.maxConnections = options.PLEDGEVIEW_CONNECTIONS_MAX
  createConnections({ perAddressMax: options.PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX, isTrustedProxy }).listen(
    app.server,
  )

  const portal: Portal = {
    ...dependencies,
    // Pages put paths behind it.
    options: { ...options, apiUrl: withoutSlash(options.apiUrl) },
    cookies: createCookies(options.portalUrl),
    sessions: createSessions(dependencies),
  }
  const requests = { running: 0 }
  requestsOf.set(app, requests)
  app.addHook('onRequest', async (_request, reply) => {
    requests.running++
    reply.raw.once('close', () => requests.running--)
    reply.headers(headers)
  })
  addRequestLog(app, logger)
  addPages(app, logger)
  await app.register(fastifyCookie)
  await app.register(fastifyFormbody)
  // The portal takes forms, and nothing else.
  app.removeContentTypeParser(['application/json', 'text/plain'])
  addHostCheck(app, options)
  addSessionHook(app, portal)
  addOriginCheck(app, options.portalUrl)
  await addStaticFiles(app)
  addSignInRoutes(app, portal)
  addSignOutRoutes(app, portal)
  addAccountPages(app, portal)
  addPublicPages(app, portal)
  addStatusPage(app, portal)
  addDataPage(app, portal)
  await addAccessRoutes(app, portal)
  return app
}

const requestsOf = new WeakMap<FastifyInstance, { running: number }>()

/** Lets running requests finish for ten seconds: making a key takes some, and its secret is in this one answer. */
export function closePortalApp(app: FastifyInstance): Promise<void> {
  return closeServer(app, () => (requestsOf.get(app)?.running ?? 0) > 0)
}

const noProxy =
  'PLEDGEVIEW_PORTAL_URL is https, so a proxy stands in front of the portal, but PLEDGEVIEW_TRUST_PROXY is empty: all people count as one network, and together they get the mails, and the sign-ins through a provider, of one'
