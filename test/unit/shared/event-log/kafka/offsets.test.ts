/** The offsets of partitions whose leaders change. */
import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import { isOutage } from '../../../../../services/shared/event-log/kafka/client.ts'
import { loadKafkajs } from '../../../../../services/shared/event-log/kafka/library.ts'
import { readRanges } from '../../../../../services/shared/event-log/kafka/offsets.ts'

/** kafkajs's error for an answer with this code. Its types do not have it. */
function answered(type: string, code: number, message: string): Error {
  const { KafkaJSProtocolError } = loadKafkajs()
  return new KafkaJSProtocolError(Object.assign(new Error(message), { type, code, retriable: true }))
}

const moved = answered(
  'NOT_LEADER_FOR_PARTITION',
  6,
  'This server is not the leader for that topic-partition',
)

/** An admin that knows an old leader until it disconnects, as kafkajs's does. */
function adminOf(failure: Error) {
  let isOld = true
  let disconnects = 0
  const admin: Pick<Admin, 'fetchTopicOffsets' | 'disconnect'> = {
    async fetchTopicOffsets() {
      if (isOld) throw failure
      return [{ partition: 0, offset: '7', low: '2', high: '7' }]
    },
    async disconnect() {
      disconnects++
      isOld = false
    },
  }
  return { cluster: { admin: admin as Admin, names: { topicPrefix: '' } }, disconnects: () => disconnects }
}

test('a partition whose leader has moved is asked for at the new leader by the next attempt', async () => {
  const { cluster } = adminOf(moved)
  const failure = await readRanges(cluster).catch(error => error)
  expect(isOutage(failure)).toBe(true)
  const ranges = await readRanges(cluster)
  expect(ranges.get('pledges/0')).toEqual({ topic: 'pledges', partition: 0, low: 2, high: 7 })
})

test('another failure does not end the connection, which other requests may use', async () => {
  const { cluster, disconnects } = adminOf(new Error('another failure'))
  await expect(readRanges(cluster)).rejects.toThrow('another failure')
  expect(disconnects()).toBe(0)
})
