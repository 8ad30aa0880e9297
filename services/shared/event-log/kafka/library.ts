/**
 * kafkajs 2.2.4, repaired: its last release, whose known faults stay. Load it here and nowhere else.
 *
 * - An idle connection wakes up every millisecond and Node warns of a negative timeout: its request queue arms a timer
 *   for nothing (tulios/kafkajs#1751). Here it is armed only where a request waits.
 * - A consumer stands still for ever at a batch that compaction has emptied: Kafka keeps such a batch for its producer's
 *   sequence number, and kafkajs, which knows positions only by records, never gets past it (tulios/kafkajs#1072). Our
 *   topics are compacted. Here each batch ends in a marker at its last offset, which kafkajs passes over like a
 *   transaction's control record.
 *
 * LZ4, Snappy and Zstandard are registered as well, without which such a batch is a fatal error.
 */
import { createRequire } from 'node:module'
import type * as Kafkajs from 'kafkajs'
import { registerCodecs } from './codecs.ts'

const require = createRequire(import.meta.url)

let loaded: typeof Kafkajs | undefined

/** kafkajs with its repairs. Throws an `Error` where it was loaded without them, or is not what they were made for. */
export function loadKafkajs(): typeof Kafkajs {
  loaded ??= load()
  return loaded
}

function load(): typeof Kafkajs {
  // The modules that use the decoder take it when they are loaded, so it is replaced before they are.
  if (require.cache[require.resolve('kafkajs')]) throw new Error('kafkajs was loaded before its repairs')
  markBatchEnds()
  const kafkajs = require('kafkajs') as typeof Kafkajs
  quietenRequestQueues()
  registerCodecs(kafkajs)
  return kafkajs
}

interface RecordBatch {
  firstOffset: string
  lastOffsetDelta: number
  maxTimestamp: string
  records: { offset: string }[]
}

type DecodeBatch = (bytes: unknown) => Promise<RecordBatch>

function markBatchEnds(): void {
  const path = require.resolve('kafkajs/src/protocol/recordBatch/v0/decoder.js')
  const decode = require(path) as DecodeBatch
  const module = require.cache[path]
  if (typeof decode !== 'function' || !module) throw new Error('this kafkajs has no record batch decoder')
  module.exports = async (bytes: unknown): Promise<RecordBatch> => {
    const batch = await decode(bytes)
    const lastOffset = String(BigInt(batch.firstOffset) + BigInt(batch.lastOffsetDelta))
    if (batch.records.at(-1)?.offset !== lastOffset) batch.records.push(endMarker(batch, lastOffset))
    return batch
  }
}

function endMarker(batch: RecordBatch, offset: string): { offset: string } {
  const marker = {
    offset,
    timestamp: batch.maxTimestamp,
    magicByte: 2,
    attributes: 0,
    key: null,
    value: null,
    headers: {},
    isControlRecord: true,
    batchContext: batch,
  }
  return marker
}

interface RequestQueue {
  pending: readonly unknown[]
  scheduleCheckPendingRequests(): void
}

function quietenRequestQueues(): void {
  const { prototype } = require('kafkajs/src/network/requestQueue/index.js') as { prototype: RequestQueue }
  const schedule = prototype.scheduleCheckPendingRequests
  if (typeof schedule !== 'function') throw new Error('this kafkajs has no request queue that checks itself')
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this)
  }
}
