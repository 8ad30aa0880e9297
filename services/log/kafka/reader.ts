/**
 * Reads the event log on Kafka: kafkajs pushes, the port pulls.
 *
 * A member of the group fetches into a bounded buffer and sends heartbeats by itself. So a caller may spend up to
 * `callerMsMax` on a batch. After that the reader gives up its partitions and fails. Positions are committed under
 * the assignment that they were fetched under, or not at all.
 *
 * How it fails: the cluster is away for longer than `outageMsMax`, records are missing (`OffsetOutOfRange`), or
 * kafkajs stopped. Then `poll` and `commit` throw the reason for good, and the process has to end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { topics } from '../../../contracts/events/event.ts'
import { type EventReader, type FindStarts, partitionName } from '../port.ts'
import { committedThrough } from './assignment.ts'
import { type KafkaSettings, topicName } from './client.ts'
import { createMembership } from './membership.ts'
import { foldPartition } from './watermark.ts'

export interface KafkaReaderSettings extends KafkaSettings {
  /** The consumer group. Without `starts` it owns the positions, and a new group reads from the start. */
  groupId: string
  /** How long a reader may be silent before the group removes it, ms. Default 10,000. */
  sessionMs?: number
  /** How often the reader sends a heartbeat, ms. Less than a third of `sessionMs`. Default 1,000. */
  heartbeatMs?: number
  /** How much is fetched ahead. One fetch of a broker may exceed it. Defaults 90,000 and 32 MiB. */
  bufferRecordsMax?: number
  bufferBytesMax?: number
  /** How long the caller may be absent between two calls before the reader gives up, ms. Default 300,000. */
  callerMsMax?: number
  /** How long the cluster may be away before the reader gives up, ms. Default 120,000. */
  outageMsMax?: number
  /** How long `lag` waits until the group has given the reader its partitions, ms. Default 10,000. */
  lagMsMax?: number
}

export interface KafkaReaderDependencies {
  logger: Logger
  /** Milliseconds, monotonic. */
  monotonicMs?: () => number
  /** Where reading begins. Default: at what the group has committed. */
  starts?: FindStarts
}

export interface KafkaReader extends EventReader {
  /** What is fetched and not taken yet. Bytes are those of keys, values and header values. */
  buffered(): { records: number; bytes: number }
}

export const outageMsMaxDefault = 120_000

const defaults = {
  sessionMs: 10_000,
  heartbeatMs: 1_000,
  bufferRecordsMax: 90_000,
  bufferBytesMax: 32 * 1024 ** 2,
  callerMsMax: 300_000,
  outageMsMax: outageMsMaxDefault,
}

const lagMsMaxDefault = 10_000
const closeMsMax = 10_000

/**
 * Joins the group. Resolves when the reader knows its partitions and their positions. Throws if the cluster cannot be
 * reached, a topic is missing, or records are missing (`OffsetOutOfRange`).
 */
export async function openKafkaReader(
  settings: KafkaReaderSettings,
  { logger, monotonicMs = () => performance.now(), starts }: KafkaReaderDependencies,
): Promise<KafkaReader> {
  const membership = createMembership({ ...defaults, ...settings }, { logger, monotonicMs, starts })

  async function close(): Promise<void> {
    await inTime(membership.close(), logger)
  }

  async function start(): Promise<string> {
    await membership.start()
    return membership.log()
  }

  const log = await start().catch(async cause => {
    await close()
    if (!isMissingTopic(cause)) throw cause
    const names = topics.map(topic => topicName(settings, topic)).join(', ')
    throw new Error(`the cluster does not have all of the topics ${names}: run pledgeview migrate`, { cause })
  })

  return {
    log,

    poll: (bounds, signal) =>
      membership.during(async () => {
        const deadline = monotonicMs() + bounds.waitMsMax
        for (;;) {
          membership.check()
          const delivery = membership.take(bounds)
          const leftMs = deadline - monotonicMs()
          if (delivery.records.length > 0 || leftMs <= 0 || signal.aborted) return delivery
          await membership.change(leftMs, signal)
        }
      }),

    commit: (assignment, positions) => membership.during(() => membership.commit(assignment, positions)),

    async restart() {
      membership.restart()
    },

    async lag() {
      const { partitions, buffer } = await membership.reading(settings.lagMsMax ?? lagMsMaxDefault)
      const ranges = await membership.ranges()
      return [...partitions.values()].map(held => {
        const { topic, partition } = held
        const committed = committedThrough(held, buffer.held(held).records === 0)
        return { topic, partition, committed, end: ranges.get(partitionName(held))?.high ?? committed }
      })
    },

    leads: () => {
      const { isReading, partitions } = membership.present()
      return isReading && partitions.has(partitionName(foldPartition)) && membership.isMember()
    },

    rememberWatermark: membership.rememberWatermark,

    buffered: () => membership.present().buffer.held(),
    close,
  }
}

function isMissingTopic(cause: unknown): boolean {
  return cause instanceof Error && 'type' in cause && cause.type === 'UNKNOWN_TOPIC_OR_PARTITION'
}

/** Leaves the group, but does not wait for ever. The group removes a silent member anyway. */
async function inTime(farewell: Promise<unknown>, logger: Logger): Promise<void> {
  const over = new AbortController()
  const late = sleep(closeMsMax, undefined, { signal: over.signal }).then(() => {
    throw new Error(`it took longer than ${closeMsMax} ms`)
  })
  try {
    await Promise.race([farewell, late])
  } catch (cause) {
    logger.warn({ error: String(cause) }, 'leaving the Kafka cluster failed')
  } finally {
    over.abort()
    late.catch(() => undefined)
  }
}
