/**
 * kafkajs's own connection to a cluster, below its consumers. kafkajs reads only in consumer groups. A group takes seconds to
 * form, commits offsets that are not needed, and does not tell when a partition has no more records.
 *
 * These parts of kafkajs have types here only. Its version is fixed (library.ts), and the suites run them on every Kafka.
 */
import { createRequire } from 'node:module'
import type * as Kafkajs from 'kafkajs'
import type { FetchedMessage } from './record-batches.ts'

const require = createRequire(import.meta.url)

export interface DirectCluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  /** Loads the metadata of the topic. */
  addTargetTopic(topic: string): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number }[]
  findBroker(at: { nodeId: number }): Promise<DirectBroker>
  fetchTopicsOffset(
    topics: { topic: string; partitions: { partition: number }[]; fromBeginning: boolean }[],
  ): Promise<{ partitions: { partition: number; offset: string }[] }[]>
}

interface DirectBroker {
  fetch(request: {
    isolationLevel: number
    maxWaitTime: number
    maxBytes: number
    topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[]
  }): Promise<{ responses: { partitions: FetchedPartition[] }[] }>
}

interface FetchedPartition {
  partition: number
  highWatermark: string
  abortedTransactions: { producerId: string; firstOffset: string }[] | null
  messages: FetchedMessage[]
}

/** What a fetch brought of a partition. */
export interface Fetched {
  partition: number
  /** The offset after the partition's last record that all replicas in sync have. */
  end: number
  /** The offset to fetch next. */
  next: number
  messages: FetchedMessage[]
}

const readCommitted = 1

/** A connection that is not connected yet. Throws an `Error` if kafkajs is not the version that this was written for. */
export function directCluster(kafka: Kafkajs.Kafka): DirectCluster {
  const name = 'private:Kafka:createCluster'
  const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === name)
  const create = symbol && (kafka as unknown as Record<symbol, unknown>)[symbol]
  if (typeof create !== 'function') throw new Error(`this kafkajs has no ${name}`)
  return create({ metadataMaxAge, allowAutoTopicCreation: false, isolationLevel: readCommitted })
}

const metadataMaxAge = 60_000

/** The partitions of a topic by their leader. Throws if the cluster does not have the topic. */
export function partitionsByLeader(cluster: DirectCluster, topic: string): Map<number, number[]> {
  const byLeader = new Map<number, number[]>()
  for (const { partitionId, leader } of cluster.findTopicPartitionMetadata(topic)) {
    byLeader.set(leader, [...(byLeader.get(leader) ?? []), partitionId])
  }
  return byLeader
}

/** The offset of the first record of each partition, or the one after its last record. */
export async function readOffsets(
  cluster: DirectCluster,
  topic: string,
  which: 'first' | 'end',
): Promise<Map<number, number>> {
  const partitions = cluster
    .findTopicPartitionMetadata(topic)
    .map(({ partitionId }) => ({ partition: partitionId }))
  const [found] = await cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning: which === 'first' }])
  if (!found || found.partitions.length === 0) throw new Error(`the cluster has no topic ${topic}`)
  return new Map(found.partitions.map(({ partition, offset }) => [partition, Number(offset)]))
}

/** Fetches from one leader. Resolves when there are records, or empty after `waitMsMax`. */
export async function fetchFrom(
  cluster: DirectCluster,
  nodeId: number,
  { topic, positions, bytesMax, waitMsMax }: FetchFrom,
): Promise<Fetched[]> {
  const broker = await cluster.findBroker({ nodeId })
  const partitions = [...positions].map(([partition, next]) => ({
    partition,
    fetchOffset: String(next),
    maxBytes: bytesMax,
  }))
  const { responses } = await broker.fetch({
    isolationLevel: readCommitted,
    maxWaitTime: waitMsMax,
    maxBytes: bytesMax,
    topics: [{ topic, partitions }],
  })
  return responses.flatMap(response =>
    response.partitions.map(fetched => fetchedOf(topic, fetched, positions.get(fetched.partition) ?? 0)),
  )
}

export interface FetchFrom {
  topic: string
  /** The offset to fetch next in each partition. */
  positions: ReadonlyMap<number, number>
  bytesMax: number
  waitMsMax: number
}

type Batch = new (
  topic: string,
  fetchedOffset: string,
  fetched: FetchedPartition,
) => { messages: FetchedMessage[]; rawMessages: FetchedMessage[] }

let batchClass: Batch | undefined

function fetchedOf(topic: string, fetched: FetchedPartition, from: number): Fetched {
  batchClass ??= require('kafkajs/src/consumer/batch.js') as Batch
  // It leaves out aborted transactions, markers, and what a batch has before the requested offset.
  const { messages, rawMessages } = new batchClass(topic, String(from), fetched)
  // The last message of a batch stands at the batch's last offset, also if compaction has removed its records.
  const last = rawMessages.at(-1)
  const next = last === undefined ? from : Math.max(from, Number(last.offset) + 1)
  return { partition: fetched.partition, end: Number(fetched.highWatermark), next, messages }
}
