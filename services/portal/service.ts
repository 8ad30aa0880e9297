/**
 * The portal, wired to what it needs. The embedded process and the separate portal processes use this same wiring. What differs
 * between them is passed in.
 */
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { KeyAdmin } from '../api-keys/api-keys.ts'
import { startRounds } from '../runtime/async/rounds.ts'
import { within } from '../runtime/async/sleep.ts'
import { type Config, ConfigError } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { shared } from '../runtime/ops/checks.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { finishDeletions, openAccounts } from './account/accounts.ts'
import { closePortalApp, createPortalApp, type PortalOptions } from './app.ts'
import { createDataAnswers, createDataPictures, createLiveState } from './guide/readings.ts'
import { createPortalKeys } from './keys/portal-keys.ts'
import { createKeyNotices } from './notices/key-notices.ts'
import { createNoticeSender } from './notices/notice-sender.ts'
import { openNotices } from './notices/notices.ts'
import { createSmtpMailer } from './notices/smtp-mailer.ts'
import { MailError, type Mailer } from './ports.ts'
import type { OidcSettings } from './sign-in/oidc.ts'
import { createFreshness } from './status/freshness.ts'
import type { PortalStore } from './store/port.ts'
import { createRequestsReader, createUsageReader } from './usage/usage-reader.ts'

type PublicOptions = Pick<PortalOptions, 'portalUrl' | 'apiUrl' | 'sqlUrl' | 'portalKey' | 'hosts'>

/** `sqlUrl`: what the setting says goes before it. */
export interface PortalServiceDependencies extends PublicOptions {
  config: Config
  /** The service closes it. */
  store: PortalStore
  /** Undefined: people cannot sign in by mail. The service closes it. */
  mailer: Mailer | undefined
  keyAdmin: Omit<KeyAdmin, 'now' | 'monotonicMs' | 'randomBytes'>
  tables: Tables
  databases: Databases
  logger: Logger
}

export type PortalService = Awaited<ReturnType<typeof startPortalService>>

// A mail about a key is sent within it.
const sendPauseMs = 5_000
// So that each minute has its measurement.
const measurePauseMs = 20_000
// A round may wait for a mail server or the log for longer than the process has to end (commands/services.ts).
const roundMsMax = 5_000

/** Creates the app, which does not listen yet. */
export async function startPortalService(dependencies: PortalServiceDependencies) {
  const { config, apiUrl, portalKey, hosts, store, mailer, tables, databases, logger } = dependencies
  const portalUrl = new URL(dependencies.portalUrl).origin
  const { writer } = dependencies.keyAdmin
  const runtime = { ...createRuntime(logger), randomBytes }
  const place = { tables, databases }
  const accounts = openAccounts({ writer, ...place, portalKey, ...runtime })
  const keys = createPortalKeys({ ...dependencies.keyAdmin, ...runtime })
  const noteParts = {
    ...{ notices: openNotices({ writer, ...place }), ...place, store, portalKey, portalUrl },
    ...runtime,
  }
  const liveState = createLiveState(place, runtime)
  const freshness = createFreshness(place, liveState, runtime)
  const app = await createPortalApp({
    accounts,
    keys,
    usageOf: createUsageReader(place, runtime.now),
    requestsOf: createRequestsReader(place, runtime.now),
    mailer,
    // Without a mailer there are none.
    notices: mailer && createKeyNotices(noteParts),
    liveState,
    freshness: freshness.read,
    pictures: createDataPictures(place, runtime),
    answers: createDataAnswers(place, runtime),
    store,
    options: {
      ...config,
      ...{ portalUrl, apiUrl, portalKey, hosts, sqlUrl: config.PLEDGEVIEW_SQL_URL ?? dependencies.sqlUrl },
      viewsDatabase: databases.views,
      oidc: oidcSettings(config),
    },
    now: runtime.now,
    logger,
  })
  const warning = (message: string) => (error: unknown) => logger.warn({ error: messageOf(error) }, message)
  const notDeleted = warning('a deletion of an account could not be completed')
  const notNotified = warning('the notices could not be looked after')
  const notMeasured = warning('the freshness of the data could not be noted')
  const notEnded = warning('the rounds of the portal did not end in time: the next portal does what is left')
  const sender = createNoticeSender({ ...noteParts, mailer })
  const lookAndSend = async (signal: AbortSignal) => {
    await sender.look(signal).catch(notNotified)
    await sender.sendDue(signal)
  }
  const rounds = [
    startRounds(freshness.measure, { pauseMs: measurePauseMs, onError: notMeasured }),
    startRounds(signal => finishDeletions({ accounts, keys }, signal, notDeleted), {
      pauseMs: 30_000,
      onError: notDeleted,
    }),
    startRounds(lookAndSend, { pauseMs: sendPauseMs, onError: notNotified }),
  ]
  return {
    app,
    readiness: () => ({ store: shared(store.check()) }),
    async close() {
      // A mail is not begun any more while requests end. What a round leaves undone, another portal does.
      const ended = Promise.all(rounds.map(round => round.close()))
      await Promise.all([closePortalApp(app), within(roundMsMax, ended).catch(notEnded)])
      await mailer?.close()
      await store.close()
    },
  }
}

/** The mailer of the settings, which counts what it sends; `undefined` if no mail server is configured. */
export function smtpMailer(
  { PLEDGEVIEW_SMTP_URL: url, PLEDGEVIEW_MAIL_FROM: from }: Config,
  { mails }: Pick<Metrics, 'mails'>,
): Mailer | undefined {
  if (url === undefined) return undefined
  const mailer = createSmtpMailer({ url, from })
  // Prometheus sees an increase only of a counter that it has seen before.
  for (const outcome of ['sent', 'failed']) mails.inc({ outcome }, 0)
  return {
    ...mailer,
    async send(mail) {
      try {
        await mailer.send(mail)
      } catch (error) {
        if (!(error instanceof MailError && error.isRefusedAddress)) mails.inc({ outcome: 'failed' })
        throw error
      }
      mails.inc({ outcome: 'sent' })
    },
  }
}

/** The provider of the settings, if there is one. Throws `ConfigError` if its secret is missing. */
export function oidcSettings({
  PLEDGEVIEW_OIDC_ISSUER: issuer,
  PLEDGEVIEW_OIDC_CLIENT_ID: clientId,
  PLEDGEVIEW_OIDC_CLIENT_SECRET: clientSecret,
}: Config): OidcSettings | undefined {
  if (issuer === undefined || clientId === undefined) return undefined
  if (clientSecret !== undefined) return { issuer, clientId, clientSecret }
  throw new ConfigError('wrong settings:\n  PLEDGEVIEW_OIDC_ISSUER: needs PLEDGEVIEW_OIDC_CLIENT_SECRET')
}
