/**
 * kafkajs 2.2.4 with repairs. It is the last release, so its known bugs stay. Load kafkajs only here.
 *
 * - An idle connection wakes up every millisecond, and Node warns of a negative timeout, because the request queue
 *   arms a timer for nothing (tulios/kafkajs#1751). Here it is armed only if a request waits.
 * - Its decoder of record batches is replaced (record-batches.ts). A single record with many headers, or a batch that
 *   unpacks to gigabytes, ended every consumer. A batch that compaction has emptied let a consumer hang.
 * - Its filter of aborted transactions is replaced (`withoutAborted`). It noticed one transaction per message, so
 *   records of aborted transactions were read.
 * - It moves past a batch without a record by itself, for example the markers of transactions, also if it fetched the
 *   batch before a seek. Here such a batch is delivered like any other, so that it is taken only in its turn.
 *
 * LZ4, Snappy and Zstandard are also registered, for writing.
 */
import { createRequire } from 'node:module'
import type * as Kafkajs from 'kafkajs'
import { registerCodecs } from './codecs.ts'
import { createDecodeMessages, type FetchedMessage } from './record-batches.ts'

const require = createRequire(import.meta.url)

let loaded: typeof Kafkajs | undefined

/**
 * kafkajs with its repairs. Throws an `Error` if it was loaded without them, or if the repairs do not fit this
 * version.
 */
export function loadKafkajs(): typeof Kafkajs {
  loaded ??= load()
  return loaded
}

function load(): typeof Kafkajs {
  // Other modules take the decoder when they are loaded, so it has to be replaced first.
  if (require.cache[require.resolve('kafkajs')]) throw new Error('kafkajs was loaded before its repairs')
  replaceExport('kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js', createDecodeMessages())
  replaceExport('kafkajs/src/consumer/filterAbortedMessages.js', withoutAborted)
  const kafkajs = require('kafkajs') as typeof Kafkajs
  replaceMethod<{ pending: readonly unknown[] }>(
    'kafkajs/src/network/requestQueue/index.js',
    'scheduleCheckPendingRequests',
    (queue, schedule) => queue.pending.length > 0 && schedule.call(queue),
  )
  // `eachBatch` gets what has no record, with the offset that it was fetched from. `eachMessage` would fetch it again and again.
  replaceMethod<{ rawMessages: readonly unknown[] }>(
    'kafkajs/src/consumer/batch.js',
    'isEmpty',
    // What the answer has of the partition, with what is not delivered.
    batch => batch.rawMessages.length === 0,
  )
  registerCodecs(kafkajs)
  return kafkajs
}

function replaceExport(name: string, replacement: unknown): void {
  const path = require.resolve(name)
  require(path)
  const module = require.cache[path]
  if (typeof module?.exports !== 'function') throw new Error(`this kafkajs has no function in ${name}`)
  module.exports = replacement
}

/** `present`: the method that is there, for `replacement` to call. */
function replaceMethod<This>(
  name: string,
  method: string,
  replacement: (self: This, present: (this: This) => unknown) => unknown,
): void {
  const { prototype } = require(name)
  const present = prototype?.[method]
  if (typeof present !== 'function') throw new Error(`this kafkajs has no method ${method} in ${name}`)
  prototype[method] = function (this: This) {
    return replacement(this, present)
  }
}

/*
 * Leaves out the records of aborted transactions, in place of kafkajs. kafkajs enters one aborted transaction per
 * message. If compaction has removed the first records of two, the records of the second were read. It also took any
 * record with the key of a marker for the end of a transaction.
 */

export type TransactionalMessage = Pick<FetchedMessage, 'offset' | 'key' | 'isControlRecord' | 'batchContext'>

export interface FetchedRecords {
  messages: readonly TransactionalMessage[]
  /** Those that overlap with the messages. Decimal. */
  abortedTransactions?: readonly { producerId: string; firstOffset: string }[] | null
}

/** The messages that are not part of an aborted transaction. Control records stay: kafkajs removes them later. */
function withoutAborted({ messages, abortedTransactions }: FetchedRecords): readonly TransactionalMessage[] {
  if (!abortedTransactions || abortedTransactions.length === 0) return messages
  const ahead = abortedTransactions.toSorted((a, b) => Number(a.firstOffset) - Number(b.firstOffset))
  const aborted = new Set<string>()
  return messages.filter(({ offset, key, isControlRecord, batchContext }) => {
    while (ahead[0] && Number(offset) >= Number(ahead[0].firstOffset)) {
      aborted.add(ahead[0].producerId)
      ahead.shift()
    }
    const { producerId, inTransaction } = batchContext
    if (!isControlRecord) return !(inTransaction && aborted.has(producerId))
    if (key?.equals(abortMarker)) aborted.delete(producerId)
    return true
  })
}

const abortMarker = Buffer.from([0, 0, 0, 0])
