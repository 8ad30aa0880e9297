/**
 * A bounded store of values that several owners use. If it is full, the owner that holds most loses what it has not
 * used for longest. So an owner that fills the store pushes out its own values, and not those of others.
 *
 * A value that several owners use counts for each of them, and stays until the last of them has lost it.
 *
 * Nearly every request is one `get`, so it only marks the value as used. A value that is marked when its turn to leave comes loses
 * the mark instead, and goes to the end.
 */
import type { Lifetime } from './cache.ts'

export interface FairStoreSettings<Value> {
  bytesMax: number
  /** The size of a value in bytes. The key is added to it. */
  bytesOf: (value: Value) => number
  /** Unix milliseconds. */
  now: () => number
}

/** Keeps values within its bounds. `owner` is the one that uses the value. */
export interface FairStore<Value> {
  /** The value, if it is kept and has not expired. */
  get(key: string, owner: string): Value | undefined
  set(key: string, value: Value, owner: string): void
  /** Looks at every value. */
  dropExpired(): void
}

interface Entry<Value> {
  value: Value
  bytes: number
  owners: Set<string>
  /** One of the owners, so that a `get` of the same owner needs no search. */
  lastOwner: string | undefined
  isUsed: boolean
}

interface Holding {
  bytes: number
  /** The keys that this owner uses; the next one to leave comes first. */
  keys: Set<string>
}

/** Creates an empty store. */
export function createFairStore<Value extends Pick<Lifetime, 'expiresAt'>>({
  bytesMax,
  bytesOf,
  now,
}: FairStoreSettings<Value>): FairStore<Value> {
  /** In the order in which they were set. */
  const entries = new Map<string, Entry<Value>>()
  const holdings = new Map<string, Holding>()
  let bytesHeld = 0

  function hold(owner: string, key: string, entry: Entry<Value>): void {
    const holding = holdings.get(owner) ?? { bytes: 0, keys: new Set() }
    holdings.set(owner, holding)
    if (!holding.keys.has(key)) holding.bytes += entry.bytes
    holding.keys.add(key)
    entry.owners.add(owner)
    entry.lastOwner = owner
  }

  function release(owner: string, key: string, entry: Entry<Value>): void {
    const holding = holdings.get(owner)
    if (holding?.keys.delete(key)) holding.bytes -= entry.bytes
    if (holding?.keys.size === 0) holdings.delete(owner)
    entry.owners.delete(owner)
    entry.lastOwner = undefined
    if (entry.owners.size > 0 || entries.get(key) !== entry) return
    entries.delete(key)
    bytesHeld -= entry.bytes
  }

  function drop(key: string): void {
    const entry = entries.get(key)
    if (entry) for (const owner of [...entry.owners]) release(owner, key, entry)
  }

  // Values live about equally long, so the expired ones are nearly all at the start.
  function dropFirstExpired(): void {
    for (const [key, { value }] of entries) {
      if (now() < value.expiresAt) return
      drop(key)
    }
  }

  function evictOne(): void {
    let largest: [owner: string, holding: Holding] | undefined
    for (const candidate of holdings) {
      if (largest === undefined || candidate[1].bytes > largest[1].bytes) largest = candidate
    }
    if (largest === undefined) return
    const [owner, { keys }] = largest
    for (const key of keys) {
      const entry = entries.get(key)
      if (entry?.isUsed === false) {
        release(owner, key, entry)
        return
      }
      keys.delete(key)
      if (entry === undefined) continue
      entry.isUsed = false
      keys.add(key)
    }
  }

  return {
    get(key, owner) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (now() >= entry.value.expiresAt) {
        drop(key)
        return undefined
      }
      if (entry.lastOwner !== owner) hold(owner, key, entry)
      entry.isUsed = true
      return entry.value
    },

    set(key, value, owner) {
      drop(key)
      dropFirstExpired()
      const bytes = bytesOf(value) + 2 * key.length
      if (bytes > bytesMax) return
      const entry: Entry<Value> = { value, bytes, owners: new Set(), lastOwner: undefined, isUsed: false }
      entries.set(key, entry)
      bytesHeld += bytes
      hold(owner, key, entry)
      while (bytesHeld > bytesMax) evictOne()
    },

    dropExpired() {
      for (const [key, { value }] of entries) if (now() >= value.expiresAt) drop(key)
    },
  }
}
