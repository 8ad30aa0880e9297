/**
 * The active keys in memory, in buckets: a key belongs to the bucket that a checksum of its text gives. ClickHouse
 * computes the same checksum, so a bucket can be compared with the table and loaded alone. Pure.
 */
import { crc32 } from 'node:zlib'
import type { ApiKey } from './key-ring.ts'

/** Enough that one bucket of a million keys is small, and that a list of all buckets is small too. */
export const bucketCount = 1_024

/** What the table holds of one bucket. */
export interface ListedBucket {
  bucket: number
  /** Rows of the table, which are at least as many as active keys. */
  row_count: number
  /** It differs if the bucket has other content. */
  fingerprint: string
}

export interface KeyBuckets {
  /** The active key of that name; `undefined` if there is none; `not loaded` if its bucket was never loaded. */
  lookup(key: string): ApiKey | undefined | 'not loaded'
  /**
   * Remembers this list of all buckets with content. Returns the buckets that differ from what is loaded. A bucket
   * without content needs no load: it is empty from now on (`time`: Unix ms).
   */
  compare(listed: readonly ListedBucket[], time: number): number[]
  /** The buckets that were last loaded before this time (Unix ms), at most as many as fit on one page. */
  loadedBefore(time: number, keysMax: number): number[]
  /** Cuts buckets into pages of about `keysMax` keys each, and at least one bucket. */
  pages(buckets: readonly number[], keysMax: number): number[][]
  /** Replaces these buckets by what was read of them at `time` (Unix ms). */
  replace(buckets: readonly number[], keys: readonly ApiKey[], time: number): void
}

interface Bucket {
  keys: ReadonlyMap<string, ApiKey>
  fingerprint: string
  loadedAt: number
}

const noKeys: ReadonlyMap<string, ApiKey> = new Map()
const noContent = ''

/** The bucket of a key. */
export function bucketOf(key: string): number {
  return crc32(key) % bucketCount
}

/** Creates buckets of which none is loaded. */
export function createKeyBuckets(): KeyBuckets {
  const loaded: (Bucket | undefined)[] = Array.from({ length: bucketCount }, () => undefined)
  let contents = new Map<number, ListedBucket>()

  function pages(buckets: readonly number[], keysMax: number): number[][] {
    const found: number[][] = []
    let room = 0
    for (const bucket of buckets) {
      const rows = contents.get(bucket)?.row_count ?? 0
      if (found.length === 0 || room < rows) {
        found.push([])
        room = keysMax
      }
      found.at(-1)?.push(bucket)
      room -= rows
    }
    return found
  }

  return {
    pages,

    lookup(key) {
      const bucket = loaded[bucketOf(key)]
      return bucket === undefined ? 'not loaded' : bucket.keys.get(key)
    },

    compare(listed, time) {
      contents = new Map(listed.map(content => [content.bucket, content]))
      const differing: number[] = []
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        const fingerprint = contents.get(bucket)?.fingerprint ?? noContent
        if (loaded[bucket]?.fingerprint === fingerprint) continue
        if (fingerprint === noContent) loaded[bucket] = { keys: noKeys, fingerprint, loadedAt: time }
        else differing.push(bucket)
      }
      return differing
    },

    loadedBefore(time, keysMax) {
      const old = loaded.flatMap((state, bucket) => (state && state.loadedAt < time ? bucket : []))
      return pages(old, keysMax)[0] ?? []
    },

    replace(buckets, keys, time) {
      const found = new Map<number, Map<string, ApiKey>>()
      for (const key of keys) {
        const bucket = bucketOf(key.key)
        const members = found.get(bucket) ?? new Map<string, ApiKey>()
        found.set(bucket, members.set(key.key, key))
      }
      for (const bucket of buckets) {
        // The list was read before the keys. If the bucket changed in between, the next list differs from this one.
        const fingerprint = contents.get(bucket)?.fingerprint ?? noContent
        loaded[bucket] = { keys: found.get(bucket) ?? noKeys, fingerprint, loadedAt: time }
      }
    },
  }
}
