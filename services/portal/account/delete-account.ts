/**
 * Deletes an account: first its keys are revoked, then its records and its keys are deleted. If it is interrupted, it can be done again.
 * The sessions end because their account is gone.
 */
import type { Accounts, PortalKeys } from '../ports.ts'

/** Resolves when no key of the account works and the account is gone. */
export async function deleteAccount(
  { accounts, keys }: { accounts: Accounts; keys: PortalKeys },
  accountId: string,
): Promise<void> {
  await revokeAll(keys, accountId)
  await accounts.delete(accountId)
  // With the contact addresses that they carry, and with one that another window may have made meanwhile.
  await keys.deleteAll(accountId)
}

async function revokeAll(keys: PortalKeys, accountId: string): Promise<void> {
  for (const { key, status } of await keys.ofAccount(accountId)) {
    if (status !== 'revoked') await keys.revoke(accountId, key)
  }
}
