/** The end of the reject topic, for a person to look at. */
import { randomUUID } from 'node:crypto'
import type { Admin, Kafka, KafkaMessage } from 'kafkajs'
import type { StoredReject } from '../port.ts'
import { type KafkaSettings, rejectTopicName } from './client.ts'
import { readReject } from './rejects.ts'

interface Cluster {
  admin: Admin
  names: Pick<KafkaSettings, 'topicPrefix'>
}

export interface KeptRejects {
  rejects: StoredReject[]
  /** Messages of the topic that no projector wrote: where they stand, and why they cannot be read. */
  unreadable: { partition: number; offset: number; reason: string }[]
}

interface Range {
  partition: number
  from: number
  end: number
}

const readMsMax = 30_000

/** Messages of the topic; a reject that was put twice counts twice. */
export async function countRejects(cluster: Cluster): Promise<number> {
  const offsets = await cluster.admin.fetchTopicOffsets(rejectTopicName(cluster.names))
  return offsets.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0)
}

/**
 * The latest `limit` rejects, the latest first, each once. Reads the last `limit` messages of each partition, in a group
 * of its own that it removes again (`groupId` and a suffix). Rejects where they have not come within 30 s.
 */
export async function readLatestRejects(
  { admin, kafka, names, groupId }: Cluster & { kafka: Kafka; groupId: string },
  { limit }: { limit: number },
): Promise<KeptRejects> {
  const offsets = await admin.fetchTopicOffsets(rejectTopicName(names))
  const ranges = offsets
    .map(({ partition, low, high }) => ({
      partition,
      from: Math.max(Number(low), Number(high) - limit),
      end: Number(high),
    }))
    .filter(({ from, end }) => from < end)
  const found: KeptRejects = { rejects: [], unreadable: [] }
  await readRangesOf(
    kafka,
    admin,
    { topic: rejectTopicName(names), groupId, ranges },
    (partition, message) => {
      try {
        found.rejects.push({ ...readReject(names, message), rejectedAt: Number(message.timestamp) })
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause)
        found.unreadable.push({ partition, offset: Number(message.offset), reason })
      }
    },
  )
  return { ...found, rejects: latestOnce(found.rejects).slice(0, limit) }
}

/** A reject is known by where its record stood; of several the first counts, and offsets follow time. */
function latestOnce(rejects: readonly StoredReject[]): StoredReject[] {
  const first = new Map<string, StoredReject>()
  for (const reject of rejects.toSorted((a, b) => a.rejectedAt - b.rejectedAt)) {
    const { topic, partition, offset } = reject.record
    const name = `${topic}/${partition}/${offset}`
    if (!first.has(name)) first.set(name, reject)
  }
  return [...first.values()].reverse()
}

/** Hands over every message of the ranges. kafkajs reads in groups only, so it takes one for the moment. */
async function readRangesOf(
  kafka: Kafka,
  admin: Admin,
  { topic, groupId, ranges }: { topic: string; groupId: string; ranges: readonly Range[] },
  take: (partition: number, message: KafkaMessage) => void,
): Promise<void> {
  if (ranges.length === 0) return
  const ownGroup = `${groupId}-look-${randomUUID()}`
  const consumer = kafka.consumer({ groupId: ownGroup, maxWaitTimeInMs: 100 })
  const open = new Map(ranges.map(range => [range.partition, range]))
  const { promise: isRead, resolve, reject } = Promise.withResolvers<void>()
  const late = setTimeout(() => reject(new Error(`${topic} was not read within ${readMsMax} ms`)), readMsMax)
  consumer.on(consumer.events.CRASH, ({ payload: { error } }) => reject(error))
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const range = open.get(partition)
        const offset = Number(message.offset)
        // It may fetch from the topic's start before it has seen where to look.
        if (!range || offset < range.from || offset >= range.end) return
        take(partition, message)
        if (offset === range.end - 1) open.delete(partition)
        if (open.size === 0) resolve()
      },
    })
    for (const { partition, from } of ranges) consumer.seek({ topic, partition, offset: String(from) })
    await isRead
  } finally {
    clearTimeout(late)
    await consumer.disconnect()
    await admin.deleteGroups([ownGroup])
  }
}
