/** Starts the portal's app on a free port, with its ports in memory and a clock that the test advances. */
import { pino } from 'pino'
import {
  closePortalApp,
  createPortalApp,
  type PortalDependencies,
  type PortalOptions,
} from '../../../services/portal/app.ts'
import { createCookies } from '../../../services/portal/http/cookies.ts'
import { loopbackHosts } from '../../../services/portal/http/headers.ts'
import type { Account } from '../../../services/portal/ports.ts'
import { createSessions } from '../../../services/portal/sign-in/sessions.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { testClock } from '../query/app.ts'
import { type Browser, createBrowser } from './browser.ts'
import { memoryAccounts, memoryKeys, memoryMailer, memoryNotices } from './memory-ports.ts'

export type TestPortal = Awaited<ReturnType<typeof startTestPortal>>

export interface Person {
  account: Account
  browser: Browser
}

export const portalKey = '0'.repeat(64)

/** Listens when it resolves. `overrides` takes the place of ports in memory. */
export async function startTestPortal({
  port: givenPort,
  options = {},
  overrides = {},
}: {
  port?: number
  options?: Partial<PortalOptions>
  overrides?: Partial<PortalDependencies>
} = {}) {
  const clock = testClock()
  const log: string[] = []
  const port = givenPort ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const accounts = memoryAccounts(clock.now)
  const keys = memoryKeys(clock.now)
  const mailer = memoryMailer()
  const notices = memoryNotices()
  const store = openSqliteStore({ path: ':memory:', now: clock.now })
  const dependencies: PortalDependencies = {
    ...{ accounts, keys, mailer, notices, store, now: clock.now },
    usageOf: async asked => new Map(asked.map(({ key }) => [key, { last_used: undefined, days: [] }])),
    requestsOf: async () => ({ latest: [], endpoints: [] }),
    freshness: async () => ({ days: [], incidents: [] }),
    liveState: async () => ({ status: 'Up to date', campaigns: 3, as_of: clock.now() }),
    answers: async () => new Map(),
    pictures: async () => ({}),
    options: {
      ...{ portalUrl: url, apiUrl: 'http://127.0.0.1:8080/api/v1', viewsDatabase: 'crowdfunding', portalKey },
      ...readConfig({}),
      hosts: loopbackHosts,
      PLEDGEVIEW_CONNECTIONS_MAX: 100,
      PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX: 50,
      ...options,
    },
    logger: pino({ level: 'debug' }, { write: line => void log.push(line) }),
    ...overrides,
  }
  const app = await createPortalApp(dependencies)
  await app.listen({ host: '127.0.0.1', port })
  const sessions = createSessions(dependencies)
  return {
    // `log`: the lines.
    ...{ url, clock, accounts, keys, mailer, notices, log },
    browser: () => createBrowser(url),
    /** A person whose browser is signed in. */
    async signIn(email: string): Promise<Person> {
      const account = await dependencies.accounts.ofVerifiedEmail(email)
      const browser = createBrowser(url)
      browser.cookies.set(createCookies(url).session.name, await sessions.begin(account))
      return { account, browser }
    },
    /** Ends the app as the service does. */
    end: () => closePortalApp(app),
    async close() {
      app.server.closeAllConnections()
      await app.close()
      await store.close()
    },
  }
}
