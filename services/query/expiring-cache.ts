/** Values in memory until they expire: single flight, bounded in bytes, least recently used first to go. */
import { LRUCache } from 'lru-cache'

export interface ExpiringCacheSettings<Value> {
  bytesMax: number
  /** What a value takes, in bytes; the key is counted besides. */
  bytesOf: (value: Value) => number
  /** When a value expires, in Unix milliseconds. */
  expiresAt: (value: Value) => number
  /** Unix milliseconds. */
  now: () => number
}

export interface ExpiringCache<Value> {
  /** The kept value, or what the running load gives, or what a new load gives. Rejects with the load's error. */
  get(key: string, load: () => Promise<Value>): Promise<Value>
}

// What an entry takes besides key and value: a place in a map and in a list.
const entryOverheadBytes = 256

/** Makes an empty cache. A failed load is not kept; nor is a value that expired meanwhile or is above the bound. */
export function createExpiringCache<Value extends object>({
  bytesMax,
  bytesOf,
  expiresAt,
  now,
}: ExpiringCacheSettings<Value>): ExpiringCache<Value> {
  const kept = new LRUCache<string, Value>({
    maxSize: bytesMax,
    sizeCalculation: (value, key) => Math.ceil(bytesOf(value)) + 2 * key.length + entryOverheadBytes,
  })
  const loads = new Map<string, Promise<Value>>()

  async function loadAndKeep(key: string, load: () => Promise<Value>): Promise<Value> {
    try {
      const value = await load()
      if (now() < expiresAt(value)) kept.set(key, value)
      return value
    } finally {
      loads.delete(key)
    }
  }

  return {
    async get(key, load) {
      const value = kept.get(key)
      if (value !== undefined && now() < expiresAt(value)) return value
      let running = loads.get(key)
      if (running === undefined) {
        running = loadAndKeep(key, load)
        loads.set(key, running)
      }
      return running
    },
  }
}
