/** Starts the portal's app on a free port, with its ports in memory and a clock that the test advances. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { createPortalApp, type PortalDependencies, type PortalOptions } from '../../../services/portal/app.ts'
import { loopbackHosts } from '../../../services/portal/http/security-headers.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { type TestClock, testClock } from '../query-app.ts'
import { type Browser, createBrowser } from './browser.ts'
import { memoryAccounts, memoryKeys, memoryMailer, noPictures, noUsage } from './memory-ports.ts'

export interface TestPortal {
  url: string
  clock: TestClock
  accounts: ReturnType<typeof memoryAccounts>
  keys: ReturnType<typeof memoryKeys>
  mailer: ReturnType<typeof memoryMailer>
  /** The log lines. */
  log: string[]
  browser(): Browser
  close(): Promise<void>
}

export interface TestPortalSettings {
  port?: number
  options?: Partial<PortalOptions>
  overrides?: Partial<PortalDependencies>
}

export const portalKey = '0'.repeat(64)

/** Listens when it resolves. */
export async function startTestPortal({
  port: givenPort,
  options = {},
  overrides = {},
}: TestPortalSettings = {}): Promise<TestPortal> {
  const clock = testClock()
  const log: string[] = []
  const port = givenPort ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const accounts = memoryAccounts(clock.now)
  const keys = memoryKeys(clock.now, randomBytes)
  const mailer = memoryMailer()
  const store = openSqliteStore({ path: ':memory:', now: clock.now })
  const app = await createPortalApp({
    accounts,
    keys,
    usage: noUsage,
    mailer,
    notices: { created: async () => undefined, revoked: async () => undefined },
    live: { read: async () => ({ status: 'up to date', campaigns: 3, as_of: clock.now() }) },
    pictures: noPictures,
    store,
    options: {
      portalUrl: url,
      viewsDatabase: 'crowdfunding',
      apiUrl: 'http://127.0.0.1:8080/api/v1',
      portalKey,
      hosts: loopbackHosts,
      trustProxy: [],
      connectionsMax: 100,
      connectionsPerAddressMax: 50,
      hasMail: true,
      ...options,
    },
    now: clock.now,
    randomBytes,
    logger: pino({ level: 'debug' }, { write: line => void log.push(line) }),
    ...overrides,
  })
  await app.listen({ host: '127.0.0.1', port })
  return {
    url,
    clock,
    accounts,
    keys,
    mailer,
    log,
    browser: () => createBrowser(url),
    async close() {
      app.server.closeAllConnections()
      await app.close()
      await store.close()
    },
  }
}
