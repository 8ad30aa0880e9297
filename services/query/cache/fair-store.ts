/**
 * A bounded store of values that several owners use. If it is full, the owner that holds most loses what it has not
 * used for longest. So an owner that fills the store pushes out its own values, and not those of others.
 *
 * A value that several owners use counts for each of them, and stays until the last of them has lost it.
 */
import type { ExpiringStore, ExpiringStoreSettings } from './expiring-cache.ts'

interface Entry<Value> {
  value: Value
  bytes: number
  owners: Set<string>
}

interface Holding {
  bytes: number
  /** The keys that this owner uses; the one that it has not used for longest comes first. */
  keys: Set<string>
}

/** Creates an empty store. */
export function createFairStore<Value extends object>({
  bytesMax,
  bytesOf,
  expiresAt,
  now,
}: ExpiringStoreSettings<Value>): ExpiringStore<Value> {
  /** In the order in which they were set. */
  const entries = new Map<string, Entry<Value>>()
  const holdings = new Map<string, Holding>()
  let bytesHeld = 0

  function hold(owner: string, key: string, entry: Entry<Value>): void {
    const holding = holdings.get(owner) ?? { bytes: 0, keys: new Set() }
    holdings.set(owner, holding)
    if (!holding.keys.delete(key)) holding.bytes += entry.bytes
    holding.keys.add(key)
    entry.owners.add(owner)
  }

  function release(owner: string, key: string, entry: Entry<Value>): void {
    const holding = holdings.get(owner)
    if (holding?.keys.delete(key)) holding.bytes -= entry.bytes
    if (holding?.keys.size === 0) holdings.delete(owner)
    entry.owners.delete(owner)
    if (entry.owners.size > 0 || entries.get(key) !== entry) return
    entries.delete(key)
    bytesHeld -= entry.bytes
  }

  function drop(key: string): void {
    const entry = entries.get(key)
    if (entry) for (const owner of [...entry.owners]) release(owner, key, entry)
  }

  // Values live about equally long, so the expired ones are nearly all at the start.
  function dropExpired(): void {
    for (const [key, { value }] of entries) {
      if (now() < expiresAt(value)) return
      drop(key)
    }
  }

  function evictOne(): void {
    let largest: [owner: string, holding: Holding] | undefined
    for (const candidate of holdings) {
      if (largest === undefined || candidate[1].bytes > largest[1].bytes) largest = candidate
    }
    const [key] = largest?.[1].keys ?? []
    const entry = key === undefined ? undefined : entries.get(key)
    if (largest && key !== undefined && entry) release(largest[0], key, entry)
  }

  return {
    get(key, owner) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (now() >= expiresAt(entry.value)) {
        drop(key)
        return undefined
      }
      hold(owner, key, entry)
      return entry.value
    },

    set(key, value, owner) {
      drop(key)
      dropExpired()
      const bytes = bytesOf(value) + 2 * key.length
      if (bytes > bytesMax) return
      const entry: Entry<Value> = { value, bytes, owners: new Set() }
      entries.set(key, entry)
      bytesHeld += bytes
      hold(owner, key, entry)
      while (bytesHeld > bytesMax) evictOne()
    },
  }
}
