/** Starts the portal with the pages under /access. Its ports are in memory, say what they were asked to do, and can fail. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { KeyError } from '../../../services/api-keys/api-keys.ts'
import { AccountError } from '../../../services/portal/account/accounts.ts'
import { createPortalApp, type PortalDependencies } from '../../../services/portal/app.ts'
import { createCookies } from '../../../services/portal/http/cookies.ts'
import { loopbackHosts } from '../../../services/portal/http/security-headers.ts'
import type { Account, Accounts, PortalKeys, UsageReader } from '../../../services/portal/ports.ts'
import { createSessions } from '../../../services/portal/sign-in/sessions.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { portalKey } from './app.ts'
import { type Browser, createBrowser } from './browser.ts'
import { memoryAccounts, memoryKeys, memoryMailer, noPictures, noUsage } from './memory-ports.ts'

export interface Person {
  account: Account
  browser: Browser
}

/** What the ports were asked to do, and how they fail. */
interface Calls {
  /** The secrets by key. */
  secrets: Map<string, string>
  /** How many keys are being made or were made. */
  issuing: number
  /** How often a page looked for integrations. */
  integrationsRead: number
  /** Runs before a key is made. */
  beforeIssue: () => Promise<void>
  /** Keys that notices were told of, by prefix. */
  created: string[]
  revoked: string[]
  noticesFail: boolean
  usageFails: boolean
  /** Default: no key was ever used. */
  usage: UsageReader['ofKeys']
  integrationRefusal: string | undefined
  /** Why a replacement makes no new key, after the old one ended. */
  replaceRefusal: string | undefined
}

export interface AccessPortal {
  url: string
  accounts: ReturnType<typeof memoryAccounts>
  keys: ReturnType<typeof memoryKeys>
  calls: Calls
  /** The log lines. */
  log: string[]
  browser(): Browser
  /** A browser that is signed in. */
  signIn(email: string): Promise<Person>
  /** How many connections are open. */
  connections(): Promise<number>
  close(): Promise<void>
}

/** Listens when it resolves. `overrides` takes the place of ports in memory. */
export async function startAccessPortal(overrides: Partial<PortalDependencies> = {}): Promise<AccessPortal> {
  const log: string[] = []
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const calls: Calls = {
    ...{
      secrets: new Map(),
      issuing: 0,
      integrationsRead: 0,
      beforeIssue: async () => undefined,
    },
    ...{
      created: [],
      revoked: [],
      noticesFail: false,
      usageFails: false,
      usage: noUsage.ofKeys,
      integrationRefusal: undefined,
      replaceRefusal: undefined,
    },
  }
  const now = Date.now
  const accounts = memoryAccounts(now)
  const keys = memoryKeys(now, randomBytes)
  const store = openSqliteStore({ path: ':memory:', now })
  const dependencies: PortalDependencies = {
    accounts: watchedAccounts(accounts, calls),
    keys: watchedKeys(keys, calls),
    usage: {
      async ofKeys(asked) {
        if (calls.usageFails) throw new Error('the tables are away')
        return calls.usage(asked)
      },
    },
    mailer: memoryMailer(),
    notices: {
      async created(_account, _integration, prefix) {
        if (calls.noticesFail) throw new Error('the mail server is away')
        calls.created.push(prefix)
      },
      revoked: async (_account, _name, prefix) => void calls.revoked.push(prefix),
    },
    live: { read: async () => ({ status: 'up to date', campaigns: 3, as_of: now() }) },
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
    },
    now,
    randomBytes,
    logger: pino({ level: 'debug' }, { write: line => void log.push(line) }),
    ...overrides,
  }
  const app = await createPortalApp(dependencies)
  await app.listen({ host: '127.0.0.1', port })
  const sessions = createSessions(dependencies)
  return {
    ...{ url, accounts, keys, calls, log },
    browser: () => createBrowser(url),
    async signIn(email) {
      const account = await dependencies.accounts.ofVerifiedEmail(email)
      const browser = createBrowser(url)
      browser.cookies.set(createCookies(url).session.name, await sessions.begin(account))
      return { account, browser }
    },
    connections: () =>
      new Promise((resolve, reject) =>
        app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    async close() {
      app.server.closeAllConnections()
      await app.close()
      await store.close()
    },
  }
}

function watchedAccounts(accounts: Accounts, calls: Calls): Accounts {
  return {
    ...accounts,
    async integrations(accountId) {
      calls.integrationsRead += 1
      return accounts.integrations(accountId)
    },
    async saveIntegration(integration) {
      if (calls.integrationRefusal) throw new AccountError('too-many-integrations', calls.integrationRefusal)
      await accounts.saveIntegration(integration)
    },
  }
}

function watchedKeys(keys: ReturnType<typeof memoryKeys>, calls: Calls): PortalKeys {
  const watched = async (make: () => ReturnType<PortalKeys['issue']>) => {
    calls.issuing += 1
    await calls.beforeIssue()
    const made = await make()
    calls.secrets.set(made.key, made.secret)
    return made
  }
  return {
    ...keys,
    issue: integration => watched(() => keys.issue(integration)),
    replace: (...args) =>
      watched(async () => {
        const made = await keys.replace(...args)
        if (calls.replaceRefusal === undefined) return made
        keys.all.pop()
        throw new KeyError(calls.replaceRefusal)
      }),
  }
}
