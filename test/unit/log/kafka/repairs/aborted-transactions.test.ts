/** Which records kafkajs leaves out because their transaction was aborted, after our repairs. */
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import {
  type FetchedRecords,
  loadKafkajs,
  type TransactionalMessage,
} from '../../../../../services/log/kafka/repairs/library.ts'

loadKafkajs()
const filter = createRequire(import.meta.url)('kafkajs/src/consumer/filterAbortedMessages.js') as (
  fetched: FetchedRecords,
) => TransactionalMessage[]

const markerKey = Buffer.from([0, 0, 0, 0])

test('all records of aborted transactions are left out, although compaction has removed the first ones', () => {
  const abortedTransactions = [
    { producerId: 'A', firstOffset: '10' },
    { producerId: 'B', firstOffset: '11' },
  ]
  const messages = [record(12, 'B'), record(13, 'B'), record(14, 'C')]
  expect(offsets(filter({ messages, abortedTransactions }))).toEqual(['14'])
})

test('only a control record ends an aborted transaction, not a record that has the same key', () => {
  const abortedTransactions = [{ producerId: 'A', firstOffset: '10' }]
  const messages = [
    { ...record(10, 'A'), key: markerKey },
    record(11, 'A'),
    { ...record(12, 'A'), key: markerKey, isControlRecord: true },
    record(13, 'A'),
  ]
  expect(offsets(filter({ messages, abortedTransactions }))).toEqual(['12', '13'])
})

function record(offset: number, producerId: string): TransactionalMessage {
  const batchContext = { producerId, inTransaction: true }
  return { offset: String(offset), key: null, isControlRecord: false, batchContext }
}

function offsets(messages: readonly TransactionalMessage[]): string[] {
  return messages.map(({ offset }) => offset)
}
