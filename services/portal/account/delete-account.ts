/**
 * Deletes an account with its integrations, its keys, and every address. The deletion is noted first, so if the process is killed,
 * another one completes it (finish-deletions.ts). The sessions end because their account is gone.
 */
import type { Accounts, PortalKeys } from '../ports.ts'

export interface DeletionPorts {
  accounts: Pick<Accounts, 'beginDeletion' | 'beingDeleted' | 'delete'>
  keys: Pick<PortalKeys, 'ofAccount' | 'revoke' | 'deleteAll'>
}

/** Resolves when no key of the account works and nothing of it is left. */
export async function deleteAccount({ accounts, keys }: DeletionPorts, accountId: string): Promise<void> {
  await accounts.beginDeletion(accountId)
  await revokeAll(keys, accountId)
  // With the names and the contact addresses that they carry.
  await keys.deleteAll(accountId)
  await accounts.delete(accountId)
  // Another window may have made a key meanwhile, and ended the sessions: then it wrote the account once more.
  await keys.deleteAll(accountId)
  await accounts.delete(accountId)
}

async function revokeAll(keys: DeletionPorts['keys'], accountId: string): Promise<void> {
  for (const { key, status } of await keys.ofAccount(accountId)) {
    if (status !== 'revoked') await keys.revoke(accountId, key)
  }
}
