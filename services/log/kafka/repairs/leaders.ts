/**
 * Requests to the leaders of partitions. If a leader has moved, kafkajs alone would ask the old one for up to five minutes. It
 * forgets who leads when its connection ends, and connects again with the next request.
 *
 * Others use the same admin at the same time. So a connection is ended once, however many of its requests found an old leader: the
 * second of them must not end the new connection, on which the next attempts run already. What others lose with the connection
 * is an outage to them (`isOutage`), so they have to try again, too.
 */
import type { Admin } from 'kafkajs'

/** The end of each admin's connection before the present one. */
const endings = new WeakMap<object, Promise<void>>()

/**
 * Asks the leaders of partitions. Throws if one that was asked is no longer the leader, and then forgets who leads, so the next
 * attempt asks the right ones.
 */
export async function askLeaders<T>(admin: Pick<Admin, 'disconnect'>, ask: () => Promise<T>): Promise<T> {
  const before = endings.get(admin)
  await before
  try {
    return await ask()
  } catch (cause) {
    if (isOfOldLeader(cause)) {
      // If it fails, the next attempt finds the old leader again.
      if (endings.get(admin) === before)
        endings.set(
          admin,
          admin.disconnect().catch(() => undefined),
        )
      await endings.get(admin)
    }
    throw cause
  }
}

function isOfOldLeader(cause: unknown): boolean {
  return cause instanceof Error && 'type' in cause && cause.type === 'NOT_LEADER_FOR_PARTITION'
}
