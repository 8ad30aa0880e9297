/**
 * Deletes an account with its integrations, its keys, and every address. From the first step on it does not exist. If the
 * process is killed after that, another one completes the deletion (finish-deletions.ts). The sessions end because their
 * account is gone.
 */
import type { Accounts, PortalKeys } from '../ports.ts'

export interface DeletionPorts {
  accounts: Pick<Accounts, 'find' | 'delete' | 'unfinished' | 'finishDeletion'>
  keys: Pick<PortalKeys, 'deleteAll'>
}

/** Resolves when no key of the account works and nothing of it is left. */
export async function deleteAccount(
  { accounts, keys }: Pick<DeletionPorts, 'keys'> & { accounts: Pick<Accounts, 'delete'> },
  accountId: string,
): Promise<void> {
  await accounts.delete(accountId)
  // With the names and the contact addresses that they carry. A deleted key is refused as a revoked one is.
  await keys.deleteAll(accountId)
}
