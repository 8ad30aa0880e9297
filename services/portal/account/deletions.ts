/**
 * Completes deletions of accounts. The first step is `accounts.delete`: from then on the account does not exist, and its sessions
 * have ended with it. The second is `keys.deleteAll`: with the names and contact addresses that the keys carry.
 *
 * A deletion may be interrupted: its process was killed, the log or the tables were away, or something was written meanwhile and
 * landed later. So every portal looks for what is left and completes it. Several may complete the same one: each step can be done again.
 */
import type { PortalKeys } from '../keys/portal-keys.ts'
import type { Accounts } from './accounts.ts'

export interface DeletionPorts {
  accounts: Pick<Accounts, 'find' | 'unfinished' | 'finishDeletion'>
  keys: Pick<PortalKeys, 'deleteAll'>
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
