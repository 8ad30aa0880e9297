/**
 * The portal's HTTP app: what every request passes through, and the pages.
 *
 * Order of a request: security headers -> Host -> session -> body -> CSRF -> handler. Promise: every answer, errors included,
 * carries the security headers; every request that changes something has passed the CSRF check.
 */
import { randomUUID } from 'node:crypto'
import fastifyCookie from '@fastify/cookie'
import fastifyFormbody from '@fastify/formbody'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { RandomBytes } from '../api-keys/credentials.ts'
import { addressMatcher } from '../runtime/http/address-ranges.ts'
import { createConnections } from '../runtime/http/connections.ts'
import { addAccountPages } from './account/account-pages.ts'
import { registerDataPage } from './guide/data-page.ts'
import { registerPublicPages } from './guide/public-pages.ts'
import { createCookies } from './http/cookies.ts'
import { addCsrfProtection } from './http/csrf.ts'
import { addErrorPages, answerBadAddress } from './http/error-pages.ts'
import { addPageReply } from './http/page-reply.ts'
import { addHostCheck, securityHeaders } from './http/security-headers.ts'
import { addRequestLog, serverOptions } from './http/server-options.ts'
import { addSessionHook } from './http/session-hook.ts'
import { addStaticFiles } from './http/static-files.ts'
import { addAccessRoutes } from './keys/routes.ts'
import type {
  Accounts,
  DataPicturesReader,
  KeyNotices,
  LiveStateReader,
  Mailer,
  PortalKeys,
  UsageReader,
} from './ports.ts'
import { createFinishSignIn } from './sign-in/finish.ts'
import type { OidcSettings } from './sign-in/oidc-client.ts'
import { addSignInRoutes, addSignOutRoutes } from './sign-in/routes.ts'
import { createSessions } from './sign-in/sessions.ts'
import type { PortalStore } from './store/port.ts'

export interface PortalOptions {
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
  /** The addresses and ranges of the proxies in front of the portal. */
  trustProxy: readonly string[]
  /** Connections beyond this number are closed on arrival. */
  connectionsMax: number
  /** Open connections of one address. See `shared/http/connections.ts`. */
  connectionsPerAddressMax: number
  /** Whether people can sign in by mail. */
  hasMail: boolean
  /** The provider through which people can sign in. */
  oidc?: OidcSettings | undefined
}

export interface PortalDependencies {
  accounts: Accounts
  keys: PortalKeys
  usage: UsageReader
  mailer: Mailer
  notices: KeyNotices
  live: LiveStateReader
  pictures: DataPicturesReader
  store: PortalStore
  options: PortalOptions
  /** Unix milliseconds. */
  now: () => number
  randomBytes: RandomBytes
  logger: Logger
}

/** Creates the app. It does not listen yet. Closing it lets running requests finish. */
export async function createPortalApp(dependencies: PortalDependencies): Promise<FastifyInstance> {
  const { accounts, keys, options, logger, randomBytes } = dependencies
  const headers = securityHeaders(options)
  const isTrustedProxy = addressMatcher(options.trustProxy)
  const app = Fastify({
    ...serverOptions(headers),
    trustProxy: options.trustProxy.length > 0 && isTrustedProxy,
    genReqId: () => randomUUID(),
    // Fastify runs no hook for these errors.
    frameworkErrors: (_error, request, reply) => {
      reply.hijack()
      answerBadAddress(reply.raw, request.id, headers)
    },
  })
  if (options.portalUrl.startsWith('https:') && options.trustProxy.length === 0) logger.warn(noProxy)
  app.server.maxConnections = options.connectionsMax
  createConnections({ perAddressMax: options.connectionsPerAddressMax, isTrustedProxy }).listen(app.server)

  const cookies = createCookies(options.portalUrl)
  const sessions = createSessions(dependencies)
  app.addHook('onRequest', async (_request, reply) => void reply.headers(headers))
  addRequestLog(app, logger)
  addPageReply(app)
  await app.register(fastifyCookie)
  await app.register(fastifyFormbody)
  // The portal takes forms, and nothing else.
  app.removeContentTypeParser(['application/json', 'text/plain'])
  addHostCheck(app, options)
  addSessionHook(app, { sessions, cookies, logger })
  addCsrfProtection(app, { ...options, cookies, randomBytes })
  addErrorPages(app, logger)
  await addStaticFiles(app)
  const finish = createFinishSignIn({ ...options, accounts, sessions, cookies, randomBytes })
  addSignInRoutes(app, { ...dependencies, cookies, finish })
  addSignOutRoutes(app, { accounts, sessions, cookies, logger })
  addAccountPages(app, { accounts, keys, sessions, cookies })
  registerPublicPages(app, dependencies)
  registerDataPage(app, dependencies)
  await addAccessRoutes(app, dependencies)
  return app
}

const noProxy =
  'PLEDGEVIEW_PORTAL_URL is https, so a proxy stands in front of the portal, but PLEDGEVIEW_TRUST_PROXY is empty: all people count as one network, and together they get the mails of one'
