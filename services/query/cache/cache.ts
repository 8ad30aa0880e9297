/**
 * The cache of a query process: finished responses, and snapshots of lists. Behind it there may be a Redis, which several
 * processes share (shared-values.ts).
 *
 * Promises, with Redis and without (test/integration/query/cache/response-cache.test.ts):
 * - A value is never returned at or after its `expiresAt`, except to callers that waited for that same load. If the clock is set back to
 *   before it was created, it has expired, too.
 * - While a load of a key runs, all other callers of that key in this process wait for it and do not load.
 * - A failed load is not kept: each waiting caller gets the error, and the next caller loads again.
 * - The memory in the process is bounded in bytes. A value that does not fit is returned but not kept. If the cache is full, the
 *   owner whose values take most memory loses one (`createFairStore`).
 */

/** When a value was created and when it expires, in Unix milliseconds. */
export interface Lifetime {
  createdAt: number
  expiresAt: number
  /**
   * The same end by the clock of what processes share, once it is stored there. A page that is made of a snapshot takes it over, so
   * both are gone at the same moment. Otherwise the page could be made again, of the same snapshot and of newer rows.
   */
  sharedUntil?: number | undefined
}

// A clock that is corrected may step back by so much.
const stepMsMax = 1_000

/** Whether a value says that it was created later than now: a clock was set back since. */
export function isOfTheFuture({ createdAt }: Lifetime, now: number): boolean {
  return createdAt - now > stepMsMax
}

/** How long a value is valid after `now`; 0 if it has expired. */
export function leftMs(value: Lifetime, now: number): number {
  return isOfTheFuture(value, now) ? 0 : Math.max(0, value.expiresAt - now)
}

/** What is cached: how large a value is, and how Redis keeps it. */
export interface CacheKind<Value extends Lifetime> {
  /** Begins every key in Redis. Change it when the stored format changes: processes of two versions may run at the same time. */
  prefix: string
  /** The memory that a value takes, without its key. */
  bytesOf(value: Value): number
  /** The value without its lifetime, as a small header and a body. */
  encode(value: Value): Promise<{ header: object; body: Buffer }>
  /** Rejects if it cannot read them. */
  decode(header: unknown, body: Buffer, lifetime: Lifetime): Promise<Value>
}

export type Cache<Value extends Lifetime> = ReturnType<typeof createCache<Value>>

/** `isHit`: no load was needed, or one of another caller was under way. A failed load is a miss. */
export type OnLookup = (isHit: boolean, count?: number) => void

/** Returns the value that all processes share, or the result of `load`. */
export type LoadShared<Value> = (key: string, load: () => Promise<Value>, owner: string) => Promise<Value>

export interface CacheSettings<Value> {
  bytesMax: number
  /** Unix milliseconds. */
  now: () => number
  /** What several processes share. Default: nothing. */
  shared?: LoadShared<Value> | undefined
  /** Called once for each lookup: for `find` if it finds something, and for `get`, which callers use if `find` found nothing. */
  onLookup?: OnLookup
}

/** Creates a cache with nothing in memory. */
export function createCache<Value extends Lifetime>(
  kind: Pick<CacheKind<Value>, 'bytesOf'>,
  { bytesMax, now, shared, onLookup }: CacheSettings<Value>,
) {
  const emptyStore = () => createFairStore<Value>(kind, bytesMax, now)
  let store = emptyStore()
  let loads = new Map<string, Promise<Value>>()
  let purges = 0

  async function loadAndKeep(key: string, load: () => Promise<Value>, owner: string): Promise<Value> {
    // What began before a purge ends in a store and a map that nobody reads any more.
    const [storeNow, loadsNow] = [store, loads]
    try {
      const value = await (shared ? shared(`${purges} ${key}`, load, owner) : load())
      if (leftMs(value, now()) > 0) storeNow.set(key, value, owner)
      return value
    } finally {
      loadsNow.delete(key)
    }
  }

  return {
    /** Returns the cached value or the running load, or `undefined` if `get` would load. It does not count as a use by an owner. */
    find(key: string): Value | Promise<Value> | undefined {
      const found = store.get(key) ?? loads.get(key)
      if (found !== undefined) onLookup?.(true)
      return found
    },

    /**
     * Returns the cached value, or the result of the running load, or the result of a new load. Rejects with the load's
     * error. `owner` is the one that uses the value: the cache shares its memory fairly among owners. All callers without an owner
     * count as one.
     */
    async get(key: string, load: () => Promise<Value>, owner = ''): Promise<Value> {
      let isHit = true
      const counted = () => {
        isHit = false
        return load()
      }
      try {
        const kept = store.get(key, owner)
        if (kept !== undefined) return kept
        const running = loads.get(key)
        const loading = running ?? loadAndKeep(key, counted, owner)
        loads.set(key, loading)
        const loaded = await loading
        // This owner uses the value too.
        if (running !== undefined) store.get(key, owner)
        return loaded
      } finally {
        onLookup?.(isHit)
      }
    },

    /** What `find` would return, and no lookup is counted. */
    peek: (key: string): Value | Promise<Value> | undefined => store.get(key) ?? loads.get(key),

    forgetOld: () => store.dropExpired(),

    forgetAll(count: number): void {
      purges = count
      store = emptyStore()
      loads = new Map()
    },
  }
}

/*
 * A bounded store of values that several owners use. If it is full, the owner that holds most loses what it has not
 * used for longest. So an owner that fills the store pushes out its own values, and not those of others.
 *
 * A value that several owners use counts for each of them, and stays until the last of them has lost it.
 *
 * Nearly every request is one `get`, so it only marks the value as used. A value that is marked when its turn to leave comes loses
 * the mark instead, and goes to the end.
 */

interface Entry<Value> {
  value: Value
  bytes: number
  owners: Set<string>
  isUsed: boolean
}

interface Holding<Value> {
  bytes: number
  /** What this owner uses; the next one to leave comes first. */
  entries: Map<string, Entry<Value>>
}

/** Creates an empty store, which keeps values and their keys within `bytesMax`. `owner` is the one that uses the value. */
export function createFairStore<Value extends Lifetime>(
  { bytesOf }: Pick<CacheKind<Value>, 'bytesOf'>,
  bytesMax: number,
  now: () => number,
) {
  /** In the order in which they were set. */
  const entries = new Map<string, Entry<Value>>()
  const holdings = new Map<string, Holding<Value>>()
  let bytesHeld = 0

  function hold(owner: string, key: string, entry: Entry<Value>): void {
    if (entry.owners.has(owner)) return
    const holding = holdings.get(owner) ?? { bytes: 0, entries: new Map() }
    holdings.set(owner, holding)
    holding.bytes += entry.bytes
    holding.entries.set(key, entry)
    entry.owners.add(owner)
  }

  function release(owner: string, key: string, entry: Entry<Value>): void {
    const holding = holdings.get(owner)
    if (holding?.entries.delete(key)) holding.bytes -= entry.bytes
    if (holding?.entries.size === 0) holdings.delete(owner)
    entry.owners.delete(owner)
    if (entry.owners.size > 0) return
    entries.delete(key)
    bytesHeld -= entry.bytes
  }

  function drop(key: string): void {
    const entry = entries.get(key)
    if (entry) for (const owner of entry.owners) release(owner, key, entry)
  }

  // Values live about equally long, so the expired ones are nearly all at the start.
  function dropFirstExpired(): void {
    for (const [key, { value }] of entries) {
      if (leftMs(value, now()) > 0) return
      drop(key)
    }
  }

  function evictOne(): void {
    let most: [owner: string, holding: Holding<Value>] | undefined
    for (const next of holdings) if (most === undefined || next[1].bytes > most[1].bytes) most = next
    if (most === undefined) return
    const [owner, largest] = most
    for (const [key, entry] of largest.entries) {
      if (!entry.isUsed) {
        release(owner, key, entry)
        return
      }
      entry.isUsed = false
      largest.entries.delete(key)
      largest.entries.set(key, entry)
    }
  }

  return {
    /** The value, if it is kept and has not expired. `owner` uses it too from now on. */
    get(key: string, owner?: string): Value | undefined {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (leftMs(entry.value, now()) === 0) {
        drop(key)
        return undefined
      }
      if (owner !== undefined) hold(owner, key, entry)
      entry.isUsed = true
      return entry.value
    },

    set(key: string, value: Value, owner: string): void {
      drop(key)
      dropFirstExpired()
      const bytes = bytesOf(value) + 2 * key.length
      if (bytes > bytesMax) return
      const entry: Entry<Value> = { value, bytes, owners: new Set(), isUsed: false }
      entries.set(key, entry)
      bytesHeld += bytes
      hold(owner, key, entry)
      while (bytesHeld > bytesMax) evictOne()
    },

    /** Looks at every value. */
    dropExpired(): void {
      for (const [key, { value }] of entries) if (leftMs(value, now()) === 0) drop(key)
    },
  }
}
