/**
 * The sweeper: writes into the log what time has done to keys.
 *
 * - A key that another one replaces gets the time at which it expires. The other one's event has that time, so this also
 *   happens if the portal that made it was killed.
 * - A key that has expired becomes REVOKED. The query service has refused it since its moment; from now on it also frees its
 *   place among the three.
 *
 * Every portal runs one. What it writes follows from the tables and has fixed versions, so several may write the same. A
 * round reads and writes at most `rowsMax` keys.
 */
import type { ApiKeyState } from '../../../contracts/events/event.ts'
import { appendStates, type KeyAdmin, type KeyRecord } from '../../api-keys/api-keys.ts'
import { sweepStatement } from '../../api-keys/key-statements.ts'
import { expiringState, revokedState } from '../../api-keys/key-states.ts'
import type { Databases, Tables } from '../../tables/port.ts'

export interface KeySweeper {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  admin: Pick<KeyAdmin, 'writer' | 'encode' | 'now' | 'monotonicMs' | 'randomBytes'>
  /** Keys of one round. */
  rowsMax?: number
  /** How long after its end a key becomes REVOKED, and how long after its issue a key gives the one that it replaces an end. */
  graceMs?: number
}

type SweptKey = Omit<KeyRecord, 'status'> & {
  work: 'ended' | 'replaced'
  /** For `replaced`: when it expires (Unix ms). */
  expires_ms: number | null
}

const readMsMax = 15_000
// A key is not written again for so long, if the tables do not show yet what was written.
const rewriteMsMin = 60_000

/** A function that does one round, and resolves with the number of keys that were written. */
export function createKeySweeper({ tables, databases, admin, rowsMax = 100, graceMs = 60_000 }: KeySweeper) {
  /** When which work was last written, on the monotonic clock. */
  const written = new Map<string, number>()
  const nameOf = ({ work, key }: SweptKey) => `${work} ${key}`

  return async (stop?: AbortSignal): Promise<number> => {
    const signal = AbortSignal.any([AbortSignal.timeout(readMsMax), ...(stop ? [stop] : [])])
    const rows = await tables.rows<SweptKey>(sweepStatement(databases, { rowsMax, graceMs }), { signal })
    const now = admin.monotonicMs()
    for (const [work, at] of written) if (now - at >= rewriteMsMin) written.delete(work)
    const fresh = rows.filter(row => !written.has(nameOf(row)))
    const states = fresh.flatMap(row => stateOf(row, admin) ?? [])
    if (states.length > 0) await appendStates(admin, states)
    for (const row of fresh) written.set(nameOf(row), now)
    return fresh.length
  }
}

/** The event to write. `undefined`: the key has the highest version. */
function stateOf(
  { work, expires_ms, ...key }: SweptKey,
  { now, randomBytes }: Pick<KeyAdmin, 'now' | 'randomBytes'>,
): ApiKeyState | undefined {
  // Neither event looks at the status.
  const record: KeyRecord = { ...key, status: 'ended' }
  return work === 'ended'
    ? revokedState(record, now())
    : expiringState(record, expires_ms ?? now(), now(), randomBytes)
}
