/** A cache that reports whether what was asked for was there. */

/** `isHit`: no load was needed, or one of another caller was under way. */
export type OnLookup = (isHit: boolean, count?: number) => void

interface Cache<Value> {
  get(key: string, load: () => Promise<Value>, owner?: string): Promise<Value>
  find(key: string): Value | Promise<Value> | undefined
}

/**
 * Reports each lookup once: `find` if it finds something, and `get`, which callers use if `find` found nothing. A failed load
 * is a miss.
 */
export function countedCache<Value>(cache: Cache<Value>, onLookup: OnLookup): Cache<Value> {
  return {
    find(key) {
      const found = cache.find(key)
      if (found !== undefined) onLookup(true)
      return found
    },
    get: (key, load, owner) => countedGet(cache, onLookup)(key, load, owner),
  }
}

/** The same for a cache that has only `get`. */
export function countedGet<Value>(cache: Pick<Cache<Value>, 'get'>, onLookup: OnLookup): Cache<Value>['get'] {
  return async (key, load, owner) => {
    let isHit = true
    const counted = () => {
      isHit = false
      return load()
    }
    try {
      return await cache.get(key, counted, owner)
    } finally {
      onLookup(isHit)
    }
  }
}
