/**
 * Searches the reject topic for an operator, within bounds: its latest messages, up to a number, and for a limited
 * time.
 *
 * A reject is identified by the place of its record. If it was stored several times in the requested period, it
 * counts once, with its first time in that period.
 */
import type { Admin, Kafka, KafkaMessage } from 'kafkajs'
import { messageOf } from '../../message-of.ts'
import type { StoredReject } from '../port.ts'
import {
  byLatest,
  type FoundRejects,
  isWithin,
  matches,
  type RejectFilter,
  type Searched,
  type TakeRejects,
  type UnreadableReject,
} from '../reject-filter.ts'
import { type KafkaSettings, rejectTopicName } from './client.ts'
import { askLeaders } from './leaders.ts'
import { type Range, readRangesOf } from './read-ranges.ts'
import { readReject } from './rejects.ts'

interface Cluster {
  admin: Admin
  names: Pick<KafkaSettings, 'topicPrefix'>
}

export interface SearchedCluster extends Cluster {
  kafka: Kafka
  /** The prefix of its temporary groups. */
  groupId: string
}

export interface SearchBounds {
  /** How many messages are read: the latest of each partition, an equal share of each. */
  messagesMax: number
  /** The most that are read of one partition. */
  partitionMax?: number
  /** How long reading may take, ms. */
  msMax: number
}

const defaultBounds: SearchBounds = { messagesMax: 1_000_000, msMax: 60_000 }
const unreadableMax = 100
const partMax = 500
const listBytesMax = 64 * 1024 ** 2

/** Messages of the topic. A reject that was stored twice counts twice. */
export async function countRejects(cluster: Cluster): Promise<number> {
  return lengthOf(await heldRanges(cluster, undefined))
}

/**
 * Passes on the rejects that match the filter, each once, in parts, until `take` returns false. Rejects that are
 * stored meanwhile are left out. Fails if the topic returns nothing in time.
 */
export async function walkRejects(
  cluster: SearchedCluster,
  filter: RejectFilter,
  take: TakeRejects,
  bounds = defaultBounds,
): Promise<Searched> {
  const held = await heldRanges(cluster, filter.since)
  const ranges = latestOf(held, bounds)
  const isNew = createOnce()
  const unreadable: UnreadableReject[] = []
  let unreadableCount = 0
  let isEnough = false

  function read(partition: number, message: KafkaMessage): StoredReject | undefined {
    const rejectedAt = Number(message.timestamp)
    if (!isWithin(filter, rejectedAt)) return undefined
    try {
      const reject = { ...readReject(cluster.names, message), rejectedAt }
      return isNew(reject) && matches(filter, reject) ? reject : undefined
    } catch (cause) {
      unreadableCount++
      if (unreadable.length < unreadableMax) {
        unreadable.push({ partition, offset: Number(message.offset), reason: messageOf(cause) })
      }
      return undefined
    }
  }

  async function takeParts(partition: number, messages: KafkaMessage[]): Promise<boolean> {
    const found = messages.map(message => read(partition, message)).filter(reject => reject !== undefined)
    for (let at = 0; at < found.length && !isEnough; at += partMax) {
      isEnough = !(await take(found.slice(at, at + partMax)))
    }
    return !isEnough
  }

  const topic = rejectTopicName(cluster.names)
  const { messages, isLate } = await readRangesOf(
    cluster,
    { topic, ranges, groupId: cluster.groupId, msMax: bounds.msMax },
    takeParts,
  )
  const isCut = !isEnough && lengthOf(ranges) < lengthOf(held)
  return {
    messages,
    of: lengthOf(held),
    ...(isCut && { cutBy: 'messages' }),
    ...(isLate && { cutBy: 'time' }),
    unreadable,
    unreadableCount,
  }
}

/**
 * The latest `limit` rejects that match the filter, fewer if they have more than 64 MiB. Without a filter it reads
 * only the end of each partition, and `matched` counts a reject once for each time that it was stored.
 */
export async function latestRejects(
  cluster: SearchedCluster,
  { limit, ...filter }: RejectFilter & { limit: number },
  bounds = defaultBounds,
): Promise<FoundRejects> {
  const latest = createLatest(limit)
  const take: TakeRejects = async rejects => latest.add(rejects)
  if (Object.values(filter).some(part => part !== undefined)) {
    const searched = await walkRejects(cluster, filter, take, bounds)
    return { ...searched, rejects: latest.rejects(), matched: latest.count() }
  }
  const { cutBy, ...searched } = await walkRejects(cluster, {}, take, { ...bounds, partitionMax: limit })
  return {
    ...searched,
    ...(cutBy === 'time' && { cutBy }),
    rejects: latest.rejects(),
    matched: searched.of,
  }
}

/** The range of each partition. With `since`: from the first message of that time. */
async function heldRanges({ admin, names }: Cluster, since: number | undefined): Promise<Range[]> {
  const topic = rejectTopicName(names)
  const offsets = await askLeaders(admin, () => admin.fetchTopicOffsets(topic))
  const starts =
    since === undefined ? [] : await askLeaders(admin, () => admin.fetchTopicOffsetsByTimestamp(topic, since))
  const startOf = new Map(starts.map(({ partition, offset }) => [partition, Number(offset)]))
  return offsets.map(({ partition, low, high }) => ({
    partition,
    from: Math.max(Number(low), Math.min(startOf.get(partition) ?? 0, Number(high))),
    end: Number(high),
  }))
}

function latestOf(
  held: readonly Range[],
  { messagesMax, partitionMax = messagesMax }: SearchBounds,
): Range[] {
  const share = Math.min(partitionMax, Math.max(1, Math.floor(messagesMax / Math.max(1, held.length))))
  return held.map(range => ({ ...range, from: Math.max(range.from, range.end - share) }))
}

function lengthOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { from, end }) => sum + end - from, 0)
}

/** Returns a function that tells whether a reject's record is seen for the first time. */
function createOnce(): (reject: StoredReject) => boolean {
  const offsets = new Map<string, Set<number>>()
  return ({ record: { topic, partition, offset } }) => {
    const name = `${topic}/${partition}`
    const known = offsets.get(name) ?? new Set()
    if (known.has(offset)) return false
    offsets.set(name, known.add(offset))
    return true
  }
}

function createLatest(limit: number) {
  let kept: StoredReject[] = []
  let keptBytes = 0
  let count = 0

  function trim(): void {
    const all = kept.sort(byLatest)
    kept = []
    keptBytes = 0
    for (const reject of all.slice(0, limit)) {
      if (kept.length > 0 && keptBytes + bytesOf(reject) > listBytesMax) return
      keep(reject)
    }
  }

  function keep(reject: StoredReject): void {
    kept.push(reject)
    keptBytes += bytesOf(reject)
  }

  return {
    add(rejects: readonly StoredReject[]): boolean {
      count += rejects.length
      for (const reject of rejects) keep(reject)
      if (kept.length >= 2 * limit || keptBytes > 2 * listBytesMax) trim()
      return true
    },
    count: () => count,
    rejects() {
      trim()
      return kept
    },
  }
}

function bytesOf({ record: { key, value } }: StoredReject): number {
  return (key?.length ?? 0) + (value?.length ?? 0)
}
