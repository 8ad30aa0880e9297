/**
 * Reads something of ClickHouse again and again. A failed poll is reported, and the next one comes after the same pause.
 *
 * The first statement of a poll has a short time limit, so that a poll on a lost connection is soon tried again. After a failure the
 * limit doubles, up to `readMsMax`, and it is at least twice what the last one took.
 */
import type { Runtime } from '../../runtime/runtime.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'

export const defaultPollingOptions = {
  /** Pause between two polls. */
  pollMs: 500,
  /** Time limit of the first statement of a poll. */
  pollMsMax: 1_000,
  /** Time limit of the others, and of the first one if the table needs longer. */
  readMsMax: 15_000,
}

export interface PollingContext extends Pick<Runtime, 'now' | 'sleep'> {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** Called for every failed poll, for the log. */
  onError: (error: unknown) => void
}

/** Runs a statement, which gets its time limit. */
export type Read = <Row>(statementFor: (msMax: number) => Statement) => Promise<Row[]>

export interface Polling {
  /** Polls once, and then again and again. Resolves after the first poll, even if it failed. */
  start(): Promise<void>
  /** Stops, and waits for a poll that is running. */
  close(): Promise<void>
}

/** `first` is for the first statement of a poll, `read` for all others. */
export function createPolling(
  poll: (first: Read, read: Read) => Promise<void>,
  { pollMs, pollMsMax, readMsMax }: typeof defaultPollingOptions,
  { tables, now, sleep, onError }: PollingContext,
): Polling {
  const stopping = new AbortController()
  let firstMsMax = pollMsMax
  let following: Promise<void> = Promise.resolve()

  function within<Row>(statementFor: (msMax: number) => Statement, msMax: number): Promise<Row[]> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(msMax)])
    return tables.rows<Row>(statementFor(msMax), { signal })
  }

  const first: Read = async statementFor => {
    const startedAt = now()
    const msMax = firstMsMax
    firstMsMax = Math.min(readMsMax, 2 * msMax)
    const rows = await within<never>(statementFor, msMax)
    firstMsMax = Math.min(readMsMax, Math.max(pollMsMax, 2 * (now() - startedAt)))
    return rows
  }

  async function tryPoll(): Promise<void> {
    try {
      await poll(first, statementFor => within(statementFor, readMsMax))
    } catch (error) {
      if (!stopping.signal.aborted) onError(error)
    }
  }

  async function follow(): Promise<void> {
    for (;;) {
      await sleep(pollMs, stopping.signal)
      if (stopping.signal.aborted) return
      await tryPoll()
    }
  }

  return {
    async start() {
      await tryPoll()
      following = follow()
    },
    async close() {
      stopping.abort()
      await following
    },
  }
}
