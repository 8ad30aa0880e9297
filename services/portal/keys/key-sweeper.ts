/**
 * The sweeper: writes into the log what time has done to keys.
 *
 * - A key that expired, or that was not confirmed in time, becomes REVOKED. The query service has refused it since its moment;
 *   from now on it also frees its place among the three.
 * - A key that ended before its secret was shown is deleted later: nothing of it has to stay.
 * - A key that should expire because another one replaced it gets its time, if the process that confirmed the other one was
 *   killed in between.
 *
 * Every portal runs one. What it writes follows from the tables and has fixed versions, so several may write the same. A
 * round reads and writes at most `rowsMax` keys. How it fails: a round that fails is reported, and the next one tries again.
 */
import type { ApiKeyState } from '../../../contracts/events/event.ts'
import { appendStates, deleteKeys, type KeyAdmin, type KeyRecord } from '../../shared/api-keys/api-keys.ts'
import { sweepStatement } from '../../shared/api-keys/key-statements.ts'
import { endedState, expiringState } from '../../shared/api-keys/key-states.ts'
import { sleep as realSleep, type Sleep } from '../../shared/sleep.ts'
import type { Databases, Tables } from '../../shared/tables/port.ts'

export interface KeySweeperOptions {
  /** Pause between two rounds. */
  pollMs: number
  /** Keys of one round. */
  rowsMax: number
  /** How long after its end a key becomes REVOKED. A confirmation that was written in time is in the tables by then. */
  graceMs: number
  /** How long after its end a key is deleted whose secret was never shown. */
  forgottenMs: number
  /** A key is not written again for so long, if the tables do not show yet what was written. */
  rewriteMsMin: number
  /** Time limit of the query. */
  readMsMax: number
}

export const defaultKeySweeperOptions: KeySweeperOptions = {
  pollMs: 10_000,
  rowsMax: 100,
  graceMs: 60_000,
  forgottenMs: 600_000,
  rewriteMsMin: 60_000,
  readMsMax: 15_000,
}

export interface KeySweeperDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  admin: Pick<KeyAdmin, 'writer' | 'encode' | 'now' | 'monotonicMs' | 'randomBytes'>
  options?: KeySweeperOptions
  sleep?: Sleep
  /** Called for every failed round, for the log. */
  onError: (error: unknown) => void
}

export interface KeySweeper {
  /** One round. Resolves with the number of keys that were written. */
  sweep(): Promise<number>
  /** Sweeps until `close`. */
  start(): void
  /** Waits for a round that is running. */
  close(): Promise<void>
}

type SweptKey = Omit<KeyRecord, 'status'> & {
  work: 'ended' | 'forgotten' | 'replaced'
  /** For `replaced`: when it expires (Unix ms). */
  expires_ms: number | null
}

export function createKeySweeper({
  tables,
  databases,
  admin,
  options = defaultKeySweeperOptions,
  sleep = realSleep,
  onError,
}: KeySweeperDependencies): KeySweeper {
  const stopping = new AbortController()
  /** When which work was last written, on the monotonic clock. */
  const written = new Map<string, number>()
  let running: Promise<void> = Promise.resolve()

  async function sweep(): Promise<number> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(options.readMsMax)])
    const rows = await tables.rows<SweptKey>(sweepStatement(databases, options), { signal })
    const now = admin.monotonicMs()
    for (const [work, at] of written) if (now - at >= options.rewriteMsMin) written.delete(work)
    const fresh = rows.filter(row => !written.has(nameOf(row)))
    const states = fresh.map(row => ({ row, state: stateOf(row, admin) }))
    const changed = states.flatMap(({ state }) => state ?? [])
    const deleted = states.filter(({ state }) => !state).map(({ row }) => row.key)
    if (changed.length > 0) await appendStates(admin, changed)
    if (deleted.length > 0) await deleteKeys(admin, deleted)
    for (const row of fresh) written.set(nameOf(row), now)
    return fresh.length
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sweep().catch(error => {
        if (!stopping.signal.aborted) onError(error)
      })
      await sleep(options.pollMs, stopping.signal)
    }
  }

  return {
    sweep,
    start() {
      running = follow()
    },
    async close() {
      stopping.abort()
      await running
    },
  }
}

/** The event to write. `undefined`: a tombstone. */
function stateOf(
  { work, expires_ms, ...key }: SweptKey,
  { now, randomBytes }: Pick<KeyAdmin, 'now' | 'randomBytes'>,
): ApiKeyState | undefined {
  // No event of this module looks at the status.
  const record: KeyRecord = { ...key, status: 'ended' }
  switch (work) {
    case 'ended':
      return endedState(record, now())
    case 'forgotten':
      return undefined
    case 'replaced':
      return expiringState(record, expires_ms ?? now(), now(), randomBytes)
    default:
      return work satisfies never
  }
}

function nameOf({ work, key }: SweptKey): string {
  return `${work} ${key}`
}
