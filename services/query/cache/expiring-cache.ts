/** A cache in memory: values expire, loads are single flight, and the size is bounded in bytes. */
import { LRUCache } from 'lru-cache'

export interface ExpiringStoreSettings<Value> {
  bytesMax: number
  /** The size of a value in bytes. The key is added to it. */
  bytesOf: (value: Value) => number
  /** When a value expires, in Unix milliseconds. */
  expiresAt: (value: Value) => number
  /** Unix milliseconds. */
  now: () => number
}

export interface ExpiringCacheSettings<Value> extends ExpiringStoreSettings<Value> {
  /** What keeps the values. Default: LRU, without regard to owners. */
  store?: ExpiringStore<Value>
}

/** Keeps values within its bounds. `owner` is the one that uses the value. */
export interface ExpiringStore<Value> {
  /** The value, if it is kept and has not expired. */
  get(key: string, owner: string): Value | undefined
  set(key: string, value: Value, owner: string): void
}

export interface ExpiringCache<Value> {
  /**
   * Returns the cached value, or the result of the running load, or the result of a new load. Rejects with the load's
   * error. `owner` is the one that uses the value, for a cache that shares its memory fairly.
   */
  get(key: string, load: () => Promise<Value>, owner?: string): Promise<Value>
  /** Returns the cached value or the running load, or `undefined` if `get` would load. */
  find(key: string, owner?: string): Value | Promise<Value> | undefined
}

// The size of an entry besides its key and value: an entry in a map and one in a list.
const entryOverheadBytes = 256
const noOwner = ''

/**
 * Creates an empty cache. It does not keep a failed load, a value that expired during the load, or a value above the
 * limit.
 */
export function createExpiringCache<Value extends object>(
  settings: ExpiringCacheSettings<Value>,
): ExpiringCache<Value> {
  const { expiresAt, now, store = createLruStore(settings) } = settings
  const loads = new Map<string, Promise<Value>>()

  async function loadAndKeep(key: string, load: () => Promise<Value>, owner: string): Promise<Value> {
    try {
      const value = await load()
      if (now() < expiresAt(value)) store.set(key, value, owner)
      return value
    } finally {
      loads.delete(key)
    }
  }

  return {
    find: (key, owner = noOwner) => store.get(key, owner) ?? loads.get(key),

    async get(key, load, owner = noOwner) {
      const value = store.get(key, owner)
      if (value !== undefined) return value
      let running = loads.get(key)
      if (running === undefined) {
        running = loadAndKeep(key, load, owner)
        loads.set(key, running)
        return running
      }
      const loaded = await running
      // This owner uses the value too.
      store.get(key, owner)
      return loaded
    },
  }
}

function createLruStore<Value extends object>({
  bytesMax,
  bytesOf,
  expiresAt,
  now,
}: ExpiringStoreSettings<Value>): ExpiringStore<Value> {
  const kept = new LRUCache<string, Value>({
    maxSize: bytesMax,
    sizeCalculation: (value, key) => Math.ceil(bytesOf(value)) + 2 * key.length + entryOverheadBytes,
  })
  return {
    get(key) {
      const value = kept.get(key)
      return value !== undefined && now() < expiresAt(value) ? value : undefined
    },
    set: (key, value) => void kept.set(key, value),
  }
}
