/**
 * The sweeper: writes into the log what time has done to keys.
 *
 * - A key that another one replaces gets the time at which it expires. The other one's event has that time, so this also
 *   happens if the portal that made it was killed.
 * - A key that has expired becomes REVOKED. The query service has refused it since its moment; from now on it also frees its
 *   place among the three.
 *
 * Every portal runs one. What it writes follows from the tables and has fixed versions, so several may write the same. A
 * round reads and writes at most `rowsMax` keys. How it fails: a round that fails is reported, and the next one tries again.
 */
import type { ApiKeyState } from '../../../contracts/events/event.ts'
import { appendStates, type KeyAdmin, type KeyRecord } from '../../api-keys/api-keys.ts'
import { sweepStatement } from '../../api-keys/key-statements.ts'
import { expiringState, revokedState } from '../../api-keys/key-states.ts'
import { sleep as realSleep, type Sleep } from '../../runtime/sleep.ts'
import type { Databases, Tables } from '../../tables/port.ts'

export interface KeySweeperOptions {
  /** Pause between two rounds. */
  pollMs: number
  /** Keys of one round. */
  rowsMax: number
  /** How long after its end a key becomes REVOKED, and how long after its issue a key gives the one that it replaces an end. */
  graceMs: number
  /** A key is not written again for so long, if the tables do not show yet what was written. */
  rewriteMsMin: number
  /** Time limit of the query. */
  readMsMax: number
}

export const defaultKeySweeperOptions: KeySweeperOptions = {
  pollMs: 10_000,
  rowsMax: 100,
  graceMs: 60_000,
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
  work: 'ended' | 'replaced'
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
    const states = fresh.flatMap(row => stateOf(row, admin) ?? [])
    if (states.length > 0) await appendStates(admin, states)
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

/** The event to write. `undefined`: the key has the highest version. */
function stateOf(
  { work, expires_ms, ...key }: SweptKey,
  { now, randomBytes }: Pick<KeyAdmin, 'now' | 'randomBytes'>,
): ApiKeyState | undefined {
  // No event of this module looks at the status.
  const record: KeyRecord = { ...key, status: 'ended' }
  switch (work) {
    case 'ended':
      return revokedState(record, now())
    case 'replaced':
      return expiringState(record, expires_ms ?? now(), now(), randomBytes)
    default:
      return work satisfies never
  }
}

function nameOf({ work, key }: SweptKey): string {
  return `${work} ${key}`
}
