/** The ports of the portal in memory, for tests of its pages. They say what they were asked to do, and can fail. */
import { randomBytes } from 'node:crypto'
import { KeyError } from '../../../services/api-keys/api-keys.ts'
import { generateApiKey, generateSecret } from '../../../services/api-keys/credentials.ts'
import type { Accounts } from '../../../services/portal/account/accounts.ts'
import type { KeyFields } from '../../../services/portal/keys/key-fields.ts'
import type { PortalKeys } from '../../../services/portal/keys/portal-keys.ts'
import type { KeyNotices } from '../../../services/portal/notices/key-notices.ts'
import type { Account, Mail, Mailer, PortalKey } from '../../../services/portal/ports.ts'

/** Accounts in memory. `account_id` is the address, so that tests can find it. */
export function memoryAccounts(now: () => number) {
  const all = new Map<string, Account>()
  const accounts: Accounts = {
    find: async accountId => all.get(accountId),
    async ofVerifiedEmail(email) {
      const made = { account_id: email, email, created_at: now(), sessions_valid_from: now() }
      const account = all.get(email) ?? made
      all.set(email, account)
      return account
    },
    async endSessions(accountId) {
      const account = all.get(accountId)
      const from = Math.max(now(), (account?.sessions_valid_from ?? 0) + 1)
      if (account) all.set(accountId, { ...account, sessions_valid_from: from })
    },
    delete: async accountId => void all.delete(accountId),
    unfinished: async () => [],
    finishDeletion: async () => undefined,
  }
  return { ...accounts, all }
}

/** Keys in memory: active at once, at most three. */
export function memoryKeys(now: () => number) {
  const all: PortalKey[] = []
  async function issue(account_id: string, { name, url, contact_email }: KeyFields, livesMs?: number) {
    calls.issuing += 1
    await calls.beforeIssue()
    const active = all.filter(record => record.account_id === account_id && record.status === 'active')
    if (active.length >= 3) throw new KeyError('three keys are active already')
    const [key, secret] = [generateApiKey(randomBytes), generateSecret(randomBytes)]
    all.push({
      ...{ key, version: '1', account_id, name, url, contact_email, secret_hash: '' },
      ...{ scopes: ['read:public'], issued_at_ms: now(), status: 'active' },
      expires_at_ms: livesMs === undefined ? null : now() + livesMs,
    })
    calls.secrets.set(key, secret)
    return { key, secret }
  }
  const keys: PortalKeys = {
    async ofAccount(accountId) {
      for (const key of all)
        if (key.status === 'active' && (key.expires_at_ms ?? Infinity) <= now()) key.status = 'ended'
      return all.filter(({ account_id }) => account_id === accountId)
    },
    issue,
    change: async (key, fields) => void Object.assign(key, fields),
    async revoke(key, onAppended) {
      onAppended?.()
      return Object.assign(key, { status: 'revoked' })
    },
    async deleteAll(accountId) {
      all.splice(0, all.length, ...all.filter(({ account_id }) => account_id !== accountId))
    },
  }
  const calls = {
    ...{ ...keys, all, secrets: new Map<string, string>() },
    /** How many keys are being made or were made. */
    issuing: 0,
    /** Runs before a key is made. */
    beforeIssue: async () => {},
    last(): PortalKey {
      const key = all.at(-1)
      if (!key) throw new Error('no key was made')
      return key
    },
  }
  return calls
}

/** Keeps the prefixes of the keys that it is told of. */
export function memoryNotices() {
  const notices = { createdKeys: [] as string[], revokedKeys: [] as string[], fails: false }
  const ports: KeyNotices = {
    async created(_account, _owner, prefix) {
      if (notices.fails) throw new Error('the mail server is away')
      notices.createdKeys.push(prefix)
    },
    revoked: async (_account, _owner, prefix) => void notices.revokedKeys.push(prefix),
  }
  return Object.assign(notices, ports)
}

/** Keeps the mails, and to whom one was tried. `fail` makes the next ones fail. */
export function memoryMailer() {
  const mails: Mail[] = []
  const tried: string[] = []
  let failure: Error | undefined
  const mailer: Mailer = {
    async send(mail) {
      tried.push(mail.to)
      if (failure) throw failure
      mails.push(mail)
    },
    close: async () => undefined,
  }
  const fail = (error: Error | undefined) => {
    failure = error
  }
  return { ...mailer, mails, tried, fail }
}

/** Valid fields of the form of a key. */
export const sampleFields: KeyFields = {
  name: 'Backer Board',
  url: 'https://board.example/',
  contact_email: 'ops@board.example',
}
