/**
 * Completes deletions of accounts: the process that began one was killed, or the log or the tables were away, or something was
 * written while the account was deleted and landed later.
 *
 * Every portal looks. Several may complete the same one: each step can be done again. How it fails: a deletion that fails is reported,
 * and the next round tries it again.
 */
import { sleep as realSleep, type Sleep } from '../../runtime/sleep.ts'
import type { Accounts, PortalKeys } from '../ports.ts'

export interface DeletionFinisherOptions extends DeletionPorts {
  /** Called for every failure, for the log. */
  onError: (error: unknown) => void
  /** Pause between two rounds. */
  pollMs?: number
  sleep?: Sleep
}

export interface DeletionFinisher {
  /** Looks until `close`. */
  start(): void
  /** Waits for a deletion that is running. */
  close(): Promise<void>
}

export function createDeletionFinisher({
  onError,
  pollMs = 30_000,
  sleep = realSleep,
  ...ports
}: DeletionFinisherOptions): DeletionFinisher {
  const stopping = new AbortController()
  let running: Promise<void> = Promise.resolve()

  async function finish(accountId: string): Promise<void> {
    // The person may have signed up again. The keys are those of the new account then.
    if (!(await ports.accounts.find(accountId))) await ports.keys.deleteAll(accountId)
    await ports.accounts.finishDeletion(accountId)
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      const unfinished = await ports.accounts.unfinished().catch((error: unknown) => {
        onError(error)
        return []
      })
      for (const accountId of unfinished) {
        if (stopping.signal.aborted) return
        await finish(accountId).catch(onError)
      }
      await sleep(pollMs, stopping.signal)
    }
  }

  return {
    start() {
      running = follow()
    },
    async close() {
      stopping.abort()
      await running
    },
  }
}

/**
 * Deletes an account with its integrations, its keys, and every address. From the first step on it does not exist. If the
 * process is killed after that, another one completes the deletion (finish-deletions.ts). The sessions end because their
 * account is gone.
 */

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
