/** The portal of the embedded service: accounts in the journal, sessions in a SQLite file, mails over SMTP or on the terminal. */

import { chmodSync } from 'node:fs'
import type { Logger } from 'pino'
import { keyDirectory } from '../api-keys/api-keys.ts'
import { analystUser } from '../clickhouse-server/configuration.ts'
import { loopbackHosts } from '../portal/http/headers.ts'
import type { Mail, Mailer } from '../portal/ports.ts'
import { type PortalService, smtpMailer, startPortalService } from '../portal/service.ts'
import { openSqliteStore } from '../portal/store/sqlite-store.ts'
import { opened } from '../runtime/async/closing.ts'
import { retry } from '../runtime/async/retry.ts'
import type { Config } from '../runtime/config.ts'
import { freePort } from '../runtime/free-port.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { openTables } from '../tables/clickhouse/clickhouse.ts'
import type { DataDirectory } from './data-directory.ts'
import type { EmbeddedModel } from './model.ts'
import { childSettings } from './tables.ts'

interface EmbeddedPortalOptions {
  model: EmbeddedModel
  directory: DataDirectory
  config: Config
  /** 0 takes a free port. */
  port: number
  /** Called with what people open, before anything is started there. */
  onAddress: (url: string) => void
  /** The public address of the API, with `/api/v1`. */
  apiUrl: string
  /** Shows a mail on the terminal, if there is no mail server. */
  showMail: (mail: Mail) => void
  logger: Logger
  metrics: Metrics
}

const portAttemptsMax = 5
// Its own, and few: with those of the model, people who open many pages at once would keep the projector and the API waiting.
const connectionsMax = 4

/** Listens when it resolves. */
export async function startEmbeddedPortal(options: EmbeddedPortalOptions): Promise<PortalService> {
  const isAny = options.port === 0
  return retry(async () => startAt(isAny ? await freePort() : options.port, options), {
    // Another program may take a free port before this one opens it.
    isRetryable: error => isAny && (error as NodeJS.ErrnoException).code === 'EADDRINUSE',
    attemptsMax: portAttemptsMax,
    pauseMsMin: 0,
  })
}

/** The configured address, or one of this machine. */
function addressAt(port: number, config: Config): string {
  const host = config.PLEDGEVIEW_HOST
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return config.PLEDGEVIEW_PORTAL_URL ?? `http://${name}:${port}`
}

async function startAt(port: number, options: EmbeddedPortalOptions): Promise<PortalService> {
  const { model, directory, config, onAddress, apiUrl, showMail, logger, metrics } = options
  const { secrets, writer, databases, door } = model
  const portalUrl = addressAt(port, config)
  onAddress(portalUrl)
  return opened(async open => {
    const tables = open(openTables({ ...childSettings(model.clickHouse, config), connectionsMax }))
    const store = openSqliteStore({ path: directory.portal, now: Date.now })
    chmodSync(directory.portal, 0o600)
    const portal = open(
      await startPortalService({
        config,
        portalUrl,
        apiUrl,
        sqlUrl: door && `${door.url}/?user=${analystUser}`,
        portalKey: secrets.portalKey,
        hosts: [...loopbackHosts, config.PLEDGEVIEW_HOST.toLowerCase()],
        store,
        mailer: smtpMailer(config, metrics) ?? terminalMailer(showMail),
        keyAdmin: { directory: keyDirectory(tables, databases), writer, pepper: secrets.keyPepper },
        tables,
        databases,
        logger,
      }),
    )
    await portal.app.listen({ host: config.PLEDGEVIEW_HOST, port })
    return portal
  })
}

function terminalMailer(showMail: EmbeddedPortalOptions['showMail']): Mailer {
  return {
    send: async mail => showMail(mail),
    mailsAre: 'This service has no mail server. It prints the mail in the terminal in which it runs.',
    close: async () => {},
  }
}
