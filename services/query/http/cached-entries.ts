/**
 * Entries of the response cache, loaded in turn by API key. What this process has cached is answered at once. For
 * everything else a key waits for its turn, so a key with many uncached requests delays its own requests, and not those
 * of others.
 *
 * An entry has an answer or an error before its connection is closed, however many statements it needs and however long
 * each waits.
 */
import type { FastifyRequest } from 'fastify'
import { createFairTurns, OverloadedError } from '../../runtime/async/fair-turns.ts'
import { within } from '../../runtime/async/within.ts'
import type { CacheEntry, ResponseCache } from '../cache/response-cache.ts'
import type { QueryAppOptions } from '../options.ts'

/**
 * Returns the entry of the key from the cache, or loads it when the API key of the request has a turn. Rejects with the
 * error of the load, with that of the turn, or with `OverloadedError` if both together take too long.
 */
export type CachedEntries = (
  request: FastifyRequest,
  key: string,
  load: (owner: string) => Promise<CacheEntry>,
) => CacheEntry | Promise<CacheEntry>

// Of the time after which a silent connection is closed. The rest is for the admission and the error.
const entryShare = 0.9

/** Creates the entries of one app. No key has requests yet. */
export function createCachedEntries(cache: ResponseCache, options: QueryAppOptions): CachedEntries {
  const turns = createFairTurns({
    runningMax: options.uncachedMax,
    runningPerKeyMax: options.uncachedPerKeyMax,
    waitingPerKeyMax: options.waitingPerKeyMax,
    waitMsMax: options.turnMsMax,
  })
  const entryMsMax = entryShare * options.socketTimeoutMs
  return (request, key, load) => {
    const found = cache.find(key)
    if (found !== undefined) return found
    const owner = request.admission?.apiKey?.key ?? ''
    const turn = { key: owner, isGone: () => request.raw.socket.destroyed }
    const entry = turns.run(turn, () => cache.get(key, () => load(owner)))
    // The work goes on if it is late, and keeps its turn, because its statements still run.
    return within(entryMsMax, entry, () => new OverloadedError(`no entry within ${entryMsMax} ms`))
  }
}
