import fc from 'fast-check'
import type { Message, PartitionMetadata } from 'kafkajs'
import { expect, test } from 'vitest'
import { createPartitioner, murmur2, partitionOf } from '../../../../services/log/kafka/partition.ts'
import { loadKafkajs } from '../../../../services/log/kafka/repairs/library.ts'

// From the tests of Kafka's own Java clients.
test.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
])('murmur2 of %s is what Java computes', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash)
})

test('a key goes to the partition that the default partitioner of kafkajs chooses', () => {
  const theirs = loadKafkajs().Partitioners.DefaultPartitioner()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 50 }), (bytes, count) => {
      const key = Buffer.from(bytes)
      const asked = { topic: 't', partitionMetadata: partitions(count), message: { key, value: null } }
      expect(partitionOf(key, count)).toBe(theirs(asked))
      expect(createPartitioner()(asked)).toBe(theirs(asked))
    }),
  )
})

test('a record without a key keeps its partition, however often kafkajs asks, and the next gets another', () => {
  const partitioner = createPartitioner()
  const ask = (message: Message) => partitioner({ topic: 't', partitionMetadata: partitions(3), message })
  const messages = Array.from({ length: 5 }, (): Message => ({ key: null, value: Buffer.from('x') }))
  const first = messages.map(ask)
  expect(messages.map(ask)).toEqual(first)
  expect(first).toEqual([0, 1, 2, 0, 1])
})

function partitions(count: number): PartitionMetadata[] {
  return Array.from({ length: count }, (_, partitionId) => ({
    partitionId,
    partitionErrorCode: 0,
    leader: 1,
    replicas: [1],
    isr: [1],
  }))
}
