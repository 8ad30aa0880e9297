/** The offsets of partitions whose leaders change. */
import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import { clusterIdOf, isOutage } from '../../../../services/log/kafka/client.ts'
import { readRanges } from '../../../../services/log/kafka/offsets.ts'
import { askLeaders } from '../../../../services/log/kafka/repairs/leaders.ts'
import { loadKafkajs } from '../../../../services/log/kafka/repairs/library.ts'

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
  const { cluster } = adminOf(movedLeader())
  const failure = await readRanges(cluster).catch(error => error)
  expect(isOutage(failure)).toBe(true)
  const ranges = await readRanges(cluster)
  expect(ranges.get('pledges/0')).toEqual({ topic: 'pledges', partition: 0, low: 2, end: 7 })
})

test('requests that find old leaders end their connection once, and not the next one, on which others ask already', async () => {
  const { cluster, disconnects } = adminOf(movedLeader())
  const { admin } = cluster
  let failLate = (_: Error) => {}
  const late = askLeaders(
    admin,
    () =>
      new Promise((_, reject) => {
        failLate = reject
      }),
  )
  const early = [1, 2, 3].map(() => askLeaders(admin, () => admin.fetchTopicOffsets('pledges')))
  for (const { status } of await Promise.allSettled(early)) expect(status).toBe('rejected')
  expect(disconnects()).toBe(1)
  expect(await askLeaders(admin, () => admin.fetchTopicOffsets('pledges'))).toHaveLength(1)
  failLate(movedLeader())
  await expect(late).rejects.toThrow('not the leader')
  expect(disconnects()).toBe(1)
  // What asks on the new connection may end that one, too.
  await expect(
    askLeaders(admin, async () => {
      throw movedLeader()
    }),
  ).rejects.toThrow('not the leader')
  expect(disconnects()).toBe(2)
})

/** kafkajs's error for an answer of a broker that does not lead the partition any more. Its types do not have it. */
function movedLeader(): Error {
  const { KafkaJSProtocolError } = loadKafkajs()
  const text = 'This server is not the leader for that topic-partition'
  const fault = { type: 'NOT_LEADER_FOR_PARTITION', code: 6, retriable: true }
  return new KafkaJSProtocolError(Object.assign(new Error(text), fault))
}

test('a cluster that does not tell its id while leaders are elected is away, and nothing else ends the reader', async () => {
  // What kafkajs does with the answer of no broker.
  const describeCluster = async () => JSON.parse('null').brokers
  await expect(clusterIdOf({ describeCluster })).rejects.toSatisfy(isOutage)
  const refused = new Error('not authorized')
  await expect(clusterIdOf({ describeCluster: () => Promise.reject(refused) })).rejects.toBe(refused)
})
