/** The ports of the portal in memory, for tests of its pages. */
import { randomUUID } from 'node:crypto'
import { KeyError } from '../../../services/api-keys/api-keys.ts'
import { generateApiKey, generateSecret } from '../../../services/api-keys/credentials.ts'
import type {
  Account,
  Accounts,
  DataPicturesReader,
  Integration,
  Mail,
  Mailer,
  PortalKey,
  PortalKeys,
  UsageReader,
} from '../../../services/portal/ports.ts'

/** Accounts in memory. `account_id` is the address, so that tests can find it. */
export function memoryAccounts(now: () => number): Accounts & { all: Map<string, Account> } {
  const all = new Map<string, Account>()
  const integrations = new Map<string, Integration>()
  return {
    all,
    find: async accountId => all.get(accountId),
    async ofVerifiedEmail(email) {
      const account = all.get(email) ?? {
        account_id: email,
        email,
        created_at: now(),
        sessions_valid_from: now(),
      }
      all.set(email, account)
      return account
    },
    async endSessions(accountId) {
      const account = all.get(accountId)
      if (account)
        all.set(accountId, {
          ...account,
          sessions_valid_from: Math.max(now(), account.sessions_valid_from + 1),
        })
    },
    integrations: async accountId =>
      [...integrations.values()].filter(({ account_id }) => account_id === accountId),
    saveIntegration: async integration => void integrations.set(integration.integration_id, integration),
    removeIntegration: async (_accountId, integrationId) => void integrations.delete(integrationId),
    delete: async accountId => {
      all.delete(accountId)
      for (const { integration_id, account_id } of [...integrations.values()])
        if (account_id === accountId) integrations.delete(integration_id)
    },
    unfinished: async () => [],
    finishDeletion: async () => undefined,
  }
}

/** Keys in memory: active at once, at most three. */
export function memoryKeys(
  now: () => number,
  randomBytes: (count: number) => Uint8Array,
): PortalKeys & { all: PortalKey[] } {
  const all: PortalKey[] = []
  const find = (accountId: string, key: string): PortalKey => {
    const found = all.find(record => record.account_id === accountId && record.key.startsWith(key))
    if (!found) throw new KeyError(`there is no key ${key}`)
    return found
  }
  const issue: PortalKeys['issue'] = async integration => {
    const active = all.filter(
      ({ account_id, status }) => account_id === integration.account_id && status === 'active',
    )
    if (active.length >= 3) throw new KeyError('three keys are active already')
    const key = generateApiKey(randomBytes)
    all.push({
      key,
      version: '1',
      account_id: integration.account_id,
      name: integration.name,
      url: integration.url,
      contact_email: integration.contact_email,
      secret_hash: '',
      scopes: ['read:public'],
      issued_at_ms: now(),
      status: 'active',
      integration_id: integration.integration_id,
      expires_at_ms: null,
      replaces: '',
      replaced_until_ms: null,
    })
    return { key, secret: generateSecret(randomBytes) }
  }
  return {
    all,
    ofAccount: async accountId => all.filter(({ account_id }) => account_id === accountId),
    issue,
    async revoke(accountId, key) {
      const record = find(accountId, key)
      record.status = 'revoked'
      return record
    },
    async replace(accountId, key, overlap, integration, onRevoked) {
      const old = find(accountId, key)
      if (overlap === 'at-once') {
        old.status = 'revoked'
        onRevoked?.()
      }
      return issue(integration)
    },
    async deleteAll(accountId, integrationId) {
      const isKept = ({ account_id, integration_id }: PortalKey) =>
        account_id !== accountId || (integrationId !== undefined && integration_id !== integrationId)
      all.splice(0, all.length, ...all.filter(isKept))
    },
  }
}

/** No key has been used. */
export const noUsage: UsageReader = {
  ofKeys: async keys => new Map(keys.map(({ key }) => [key, { last_used: undefined, days: [] }])),
}

/** The page for data teams without data. */
export const noPictures: DataPicturesReader = {
  read: async () => ({ about: undefined, funding: undefined, categories: undefined, campaigns: undefined }),
}

/** Keeps the mails. `fail` makes the next ones fail. */
export function memoryMailer(): Mailer & { mails: Mail[]; fail: (error: Error | undefined) => void } {
  const mails: Mail[] = []
  let failure: Error | undefined
  return {
    mails,
    fail: error => {
      failure = error
    },
    async send(mail) {
      if (failure) throw failure
      mails.push(mail)
    },
    close: async () => undefined,
  }
}

/** An integration with plain values, for an account. */
export function sampleIntegration(accountId: string, changes: Partial<Integration> = {}): Integration {
  return {
    integration_id: randomUUID(),
    account_id: accountId,
    name: 'Backer Board',
    url: 'https://board.example',
    contact_email: 'ops@board.example',
    created_at: Date.parse('2026-03-01T12:00:00Z'),
    ...changes,
  }
}
