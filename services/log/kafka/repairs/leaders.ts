/**
 * Requests to the leaders of partitions. If a leader has moved, kafkajs alone would ask the old one for up to five minutes. It
 * forgets who leads when its connection ends, and connects again with the next request.
 *
 * Others use the same admin at the same time. So a connection is ended once, however many of its requests found an old leader: the
 * second of them must not end the new connection, on which the next attempts run already. What others lose with the connection
 * is an outage to them (`isOutage`), so they have to try again, too.
 */
import type { Admin } from 'kafkajs'

interface Connection {
  /** How many were ended before this one. */
  number: number
  ending: Promise<void>
}

const connections = new WeakMap<object, Connection>()

/**
 * Asks the leaders of partitions. Throws if one that was asked is no longer the leader, and then forgets who leads, so the next
 * attempt asks the right ones.
 */
export async function askLeaders<T>(admin: Pick<Admin, 'disconnect'>, ask: () => Promise<T>): Promise<T> {
  const connection = connectionOf(admin)
  await connection.ending
  const { number } = connection
  try {
    return await ask()
  } catch (cause) {
    if (isOfOldLeader(cause)) {
      if (number === connection.number) {
        connection.number++
        // If it fails, the next attempt finds the old leader again.
        connection.ending = admin.disconnect().catch(() => undefined)
      }
      await connection.ending
    }
    throw cause
  }
}

function connectionOf(admin: object): Connection {
  const known = connections.get(admin)
  if (known) return known
  const first = { number: 0, ending: Promise.resolve() }
  connections.set(admin, first)
  return first
}

function isOfOldLeader(cause: unknown): boolean {
  return cause instanceof Error && 'type' in cause && cause.type === 'NOT_LEADER_FOR_PARTITION'
}
