/** The portal of the embedded service: accounts in the journal, sessions in a SQLite file, mails over SMTP or into a folder. */

import { randomBytes } from 'node:crypto'
import { chmodSync } from 'node:fs'
import type { Logger } from 'pino'
import { loopbackHosts } from '../portal/http/host-check.ts'
import { createOutboxMailer } from '../portal/mail/outbox-mailer.ts'
import type { Mail } from '../portal/ports.ts'
import { type PortalService, smtpMailer, startPortalService } from '../portal/service.ts'
import { openSqliteStore } from '../portal/store/sqlite-store.ts'
import type { Config } from '../shared/config.ts'
import { openJournalStateTopic } from '../shared/event-log/journal/state-topic.ts'
import { freePort } from '../shared/free-port.ts'
import { type DataDirectory, readPortalKey } from './data-directory.ts'
import type { EmbeddedModel } from './model.ts'

export interface EmbeddedPortalOptions {
  model: EmbeddedModel
  directory: DataDirectory
  config: Config
  address: PortalAddress
  /** The public address of the API, with `/api/v1`. */
  apiUrl: string
  /** Undefined: there is no SQL port for data teams. */
  sqlUrl: string | undefined
  /** Shows a mail on the terminal, if there is no mail server. */
  showMail: (mail: Mail) => void
  logger: Logger
}

export interface PortalAddress {
  port: number
  /** What people open: the configured address, or one of this machine. */
  url: string
}

/** The address has to be known before anything is started, because the API's answers lead to it. 0 takes a free port. */
export async function portalAddress(config: Config, port: number): Promise<PortalAddress> {
  const taken = port === 0 ? await freePort() : port
  const host = config.PLEDGEVIEW_HOST
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return { port: taken, url: config.PLEDGEVIEW_PORTAL_URL ?? `http://${name}:${taken}` }
}

/** Listens when it resolves. */
export async function startEmbeddedPortal(options: EmbeddedPortalOptions): Promise<PortalService> {
  const { model, directory, config, address, apiUrl, sqlUrl, showMail, logger } = options
  const store = openSqliteStore({ path: directory.portal, now: Date.now })
  chmodSync(directory.portal, 0o600)
  const mailer =
    smtpMailer(config) ??
    createOutboxMailer({
      folder: directory.outbox,
      from: config.PLEDGEVIEW_MAIL_FROM,
      show: showMail,
      now: Date.now,
    })
  const portal = await startPortalService({
    config,
    portalUrl: address.url,
    apiUrl,
    sqlUrl,
    portalKey: readPortalKey(directory, config.PLEDGEVIEW_PORTAL_KEY, randomBytes),
    hosts: [...loopbackHosts, config.PLEDGEVIEW_HOST.toLowerCase()],
    accountsTopic: await openJournalStateTopic(directory.journal, 'accounts', { logger }),
    noticesTopic: await openJournalStateTopic(directory.journal, 'notices', { logger }),
    store,
    mailer,
    keyAdmin: { directory: model.keys, writer: model.writer, pepper: model.secrets.keyPepper },
    tables: model.tables,
    databases: model.databases,
    logger,
  })
  try {
    await portal.app.listen({ host: config.PLEDGEVIEW_HOST, port: address.port })
    return portal
  } catch (error) {
    await portal.close()
    throw error
  }
}
