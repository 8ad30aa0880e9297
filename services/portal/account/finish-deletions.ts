/**
 * Completes deletions of accounts that another process has begun and not ended: it was killed, or the log or the tables were away.
 *
 * Every portal looks. Several may complete the same one: each step can be done again. How it fails: a deletion that fails is reported,
 * and the next round tries it again.
 */
import { sleep as realSleep, type Sleep } from '../../shared/sleep.ts'
import { type DeletionPorts, deleteAccount } from './delete-account.ts'

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

  async function follow(): Promise<void> {
    // A deletion that was there in the round before as well: no process works on it any more, or a process is slow.
    let before: readonly string[] = []
    while (!stopping.signal.aborted) {
      const present = await ports.accounts.beingDeleted().catch((error: unknown) => {
        onError(error)
        return []
      })
      for (const accountId of present) {
        if (stopping.signal.aborted) return
        if (before.includes(accountId)) await deleteAccount(ports, accountId).catch(onError)
      }
      before = present
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
