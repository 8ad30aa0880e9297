/**
 * Reads something of ClickHouse again and again. A failed poll is reported, and the next one comes after the same pause.
 *
 * The first statement of a poll has a short time limit, so that a poll on a lost connection is soon tried again. After a failure the
 * limit doubles, up to `readMsMax`, and it is at least twice what the last one took.
 */
import { type Rounds, startRounds } from '../../runtime/async/rounds.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'

export const defaultPollingOptions = {
  /** Pause between two polls. */
  pollMs: 500,
  /** Time limit of the first statement of a poll. */
  pollMsMax: 1_000,
  /** Time limit of the others, and of the first one if the table needs longer. */
  readMsMax: 15_000,
  /** How long what is polled is ready after a poll that read all of it. */
  freshMsMax: 2_000,
  /** If nothing could be read for this long, it is not known which keys are valid. */
  staleMsMax: 60_000,
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
  { pollMs, pollMsMax, readMsMax }: Omit<typeof defaultPollingOptions, 'freshMsMax' | 'staleMsMax'>,
  { tables, now, sleep, onError }: PollingContext,
): Polling {
  let firstMsMax = pollMsMax
  let rounds: Rounds | undefined

  async function round(stopping: AbortSignal): Promise<void> {
    const within = <Row>(statementFor: (msMax: number) => Statement, msMax: number) =>
      tables.rows<Row>(statementFor(msMax), {
        signal: AbortSignal.any([stopping, AbortSignal.timeout(msMax)]),
      })

    const first: Read = async statementFor => {
      const startedAt = now()
      const msMax = firstMsMax
      firstMsMax = Math.min(readMsMax, 2 * msMax)
      const rows = await within<never>(statementFor, msMax)
      firstMsMax = Math.min(readMsMax, Math.max(pollMsMax, 2 * (now() - startedAt)))
      return rows
    }
    await poll(first, statementFor => within(statementFor, readMsMax))
  }

  return {
    start() {
      rounds = startRounds(round, { pauseMs: pollMs, onError, sleep })
      return rounds.first
    },
    close: async () => rounds?.close(),
  }
}
