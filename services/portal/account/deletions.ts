/**
 * Deletes an account with its keys, and every address. From the first step on it does not exist, and its sessions have
 * ended with it.
 *
 * A deletion may be interrupted: its process was killed, the log or the tables were away, or something was written meanwhile and
 * landed later. So every portal looks for what is left and completes it. Several may complete the same one: each step can be done again.
 */
import type { PortalKeys } from '../keys/portal-keys.ts'
import type { Accounts } from './accounts.ts'

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

/** One round: completes what is left of deletions. One that fails is reported, and does not keep the others from their turn. */
export async function finishDeletions(
  { accounts, keys }: DeletionPorts,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  async function finish(accountId: string): Promise<void> {
    // The person may have signed up again. The keys are those of the new account then.
    if (!(await accounts.find(accountId))) await keys.deleteAll(accountId)
    await accounts.finishDeletion(accountId)
  }

  for (const accountId of await accounts.unfinished()) {
    if (signal.aborted) return
    await finish(accountId).catch(onError)
  }
}
