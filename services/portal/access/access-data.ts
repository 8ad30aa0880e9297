/** Reads what the pages under /access show. Usage is an extra: if it cannot be read, the pages say so and still work. */
import type { Logger } from 'pino'
import type { Account, Accounts, Integration, PortalKey, PortalKeys, UsageReader } from '../ports.ts'
import { type KeyView, keyOfPath } from './key-state.ts'

export interface AccessPorts {
  accounts: Pick<Accounts, 'integrations' | 'saveIntegration' | 'removeIntegration'>
  keys: PortalKeys
  usage: UsageReader
  logger: Pick<Logger, 'warn' | 'error'>
}

/** The integration of that id, if the account has it. */
export async function findIntegration(
  ports: AccessPorts,
  account: Account,
  integrationId: string,
): Promise<Integration | undefined> {
  const integrations = await ports.accounts.integrations(account.account_id)
  return integrations.find(({ integration_id }) => integration_id === integrationId)
}

/** The key that a path names by its first 16 characters, if the account has it. */
export async function findKey(
  ports: AccessPorts,
  account: Account,
  name: string,
): Promise<PortalKey | undefined> {
  return keyOfPath(await ports.keys.ofAccount(account.account_id), name)
}

/** The keys with their usage. */
export async function withUsage(ports: AccessPorts, keys: readonly PortalKey[]): Promise<KeyView[]> {
  if (keys.length === 0) return []
  try {
    const usage = await ports.usage.ofKeys(keys)
    return keys.map(key => ({ key, usage: usage.get(key.key) }))
  } catch (error) {
    ports.logger.warn({ err: error }, 'the usage of keys cannot be read: the page is shown without it')
    return keys.map(key => ({ key, usage: undefined }))
  }
}
