/**
 * Follows a topic from its first record, for as long as the process runs, outside of any consumer group. Records of a partition
 * are passed on in order.
 *
 * If the cluster is away, it tries again, with pauses up to 5 s, until it is stopped: a process that serves has to come back
 * by itself. If the log no longer has the next record (the topic was made anew), or after so long a silence that
 * tombstones may have been compacted away, it begins again from the first record.
 */
import { performance } from 'node:perf_hooks'
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import { messageOf } from '../../message-of.ts'
import { backoffMs } from '../../retry.ts'
import { sleep } from '../../sleep.ts'
import type { StateRecord } from '../state-topic-memory.ts'
import {
  type DirectCluster,
  directCluster,
  type Fetched,
  fetchFrom,
  partitionsByLeader,
  readOffsets,
} from './direct.ts'

export interface Follower {
  /** Resolves when the records before these offsets were passed on; false if that takes longer than `msMax`. */
  until(ends: ReadonlyMap<number, number>, msMax: number): Promise<boolean>
  /** For how long it is not known that everything was passed on, ms. Infinite before the first time. */
  behindMs(): number
  /** Why the topic cannot be read now. */
  failure(): string | undefined
  stop(): Promise<void>
}

export interface FollowerDependencies {
  kafka: Kafkajs.Kafka
  /** The topic's name in the cluster. */
  topic: string
  /** Called before the first record, and whenever it begins again: what was passed on before no longer counts. */
  onBegin: () => void
  onRecord: (record: StateRecord) => void
  logger: Logger
}

interface Progress {
  /** The offset to fetch next in each partition; empty before the first session. */
  positions: Map<number, number>
  /** When it was last known of each partition that all its records were passed on, monotonic ms. */
  seenAt: Map<number, number>
}

// Kafka keeps tombstones for a day by default. A shorter silence cannot hide one.
const silenceMsMax = 12 * 3_600_000
const fetchWaitMsMax = 400
const fetchBytesMax = 1024 ** 2
const pauses = { pauseMsMin: 100, pauseMsMax: 5_000 }
// A new session sees new partitions and new leaders.
const sessionMsMax = 300_000

export function follow(dependencies: FollowerDependencies): Follower {
  const { topic, logger } = dependencies
  const stop = new AbortController()
  const progress: Progress = { positions: new Map(), seenAt: new Map() }
  let waiting: { holds: () => boolean; done: () => void }[] = []
  let failure: string | undefined
  let lastWorkedAt = Date.now()

  function hasPassed(ends: ReadonlyMap<number, number>): boolean {
    return [...ends].every(([partition, end]) => (progress.positions.get(partition) ?? -1) >= end)
  }

  function onProgress(): void {
    lastWorkedAt = Date.now()
    const ready = waiting.filter(({ holds }) => holds())
    waiting = waiting.filter(waiter => !ready.includes(waiter))
    for (const { done } of ready) done()
  }

  async function run(): Promise<void> {
    for (let failures = 0; !stop.signal.aborted; ) {
      if (Date.now() - lastWorkedAt > silenceMsMax) progress.positions.clear()
      try {
        await session(dependencies, progress, stop.signal, () => {
          if (failure !== undefined) logger.info({ topic }, 'the topic is read again')
          failures = 0
          failure = undefined
          onProgress()
        })
      } catch (error) {
        if (stop.signal.aborted) return
        if (isOutOfRange(error)) progress.positions.clear()
        failures++
        if (failure === undefined)
          logger.warn({ topic, reason: messageOf(error) }, 'the topic cannot be read')
        failure = messageOf(error)
        await sleep(backoffMs(failures, pauses, Math.random), stop.signal)
      }
    }
  }

  const ended = run()
  return {
    async until(ends, msMax) {
      if (hasPassed(ends)) return true
      return await new Promise<boolean>(resolve => {
        const waiter = { holds: () => hasPassed(ends), done: () => settle(true) }
        const timer = setTimeout(() => settle(false), msMax)
        function settle(isDone: boolean): void {
          clearTimeout(timer)
          waiting = waiting.filter(other => other !== waiter)
          resolve(isDone)
        }
        waiting.push(waiter)
      })
    },
    behindMs() {
      if (progress.positions.size === 0) return Infinity
      const seen = [...progress.positions.keys()].map(
        partition => progress.seenAt.get(partition) ?? -Infinity,
      )
      return performance.now() - Math.min(...seen)
    },
    failure: () => failure,
    async stop() {
      stop.abort()
      await ended
    },
  }
}

/** Reads with one connection until it fails, the signal aborts, or its time is over. */
async function session(
  { kafka, topic, onBegin, onRecord }: FollowerDependencies,
  progress: Progress,
  signal: AbortSignal,
  onProgress: () => void,
): Promise<void> {
  const cluster = directCluster(kafka)
  const over = new AbortController()
  const endsAt = performance.now() + sessionMsMax
  const isOver = () => over.signal.aborted || signal.aborted || performance.now() > endsAt

  function take({ partition, end, next, messages }: Fetched, askedAt: number): void {
    for (const { offset, key, value, unreadable } of messages) {
      onRecord({ partition, offset: Number(offset), key, value, unreadable: unreadable?.reason })
    }
    progress.positions.set(partition, next)
    if (next >= end) progress.seenAt.set(partition, askedAt)
  }

  /** One loop for each leader, because a fetch without records waits. */
  async function followLeader(nodeId: number, partitions: readonly number[]): Promise<void> {
    while (!isOver()) {
      const askedAt = performance.now()
      const positions = new Map(
        partitions.map(partition => [partition, progress.positions.get(partition) ?? 0]),
      )
      const bounds = { topic, positions, bytesMax: fetchBytesMax, waitMsMax: fetchWaitMsMax }
      const fetched = await fetchFrom(cluster, nodeId, bounds)
      // The other loops may have ended meanwhile, because the topic is read from its start again.
      if (isOver()) return
      for (const part of fetched) take(part, askedAt)
      onProgress()
    }
  }

  try {
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    await begin(cluster, topic, progress, onBegin)
    const loops = [...partitionsByLeader(cluster, topic)].map(([nodeId, partitions]) =>
      followLeader(nodeId, partitions).catch(error => {
        over.abort()
        throw error
      }),
    )
    const results = await Promise.allSettled(loops)
    for (const result of results) if (result.status === 'rejected') throw result.reason
  } finally {
    over.abort()
    await cluster.disconnect().catch(() => undefined)
  }
}

/** Sets the positions of partitions that are not known yet: all of them at first. */
async function begin(
  cluster: DirectCluster,
  topic: string,
  { positions, seenAt }: Progress,
  onBegin: () => void,
): Promise<void> {
  const first = await readOffsets(cluster, topic, 'first')
  if (positions.size === 0) {
    seenAt.clear()
    onBegin()
  }
  for (const [partition, offset] of first) if (!positions.has(partition)) positions.set(partition, offset)
}

function isOutOfRange(error: unknown): boolean {
  return error instanceof Error && (error.name === 'KafkaJSOffsetOutOfRange' || isOutOfRange(error.cause))
}
